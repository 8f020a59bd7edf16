// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/calibrate/cpu/solver.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ryle/engine/calibrate/reference.hpp"

namespace ryle::calibrate::detail {
namespace {

/// Gains as planes and what a round needs, of one worker.
struct Workspace {
  explicit Workspace(std::int64_t n)
      : re(n), im(n), power(n), target_re(n), target_im(n), target_power(n) {}
  std::vector<double> re, im, power;  // g, |g|^2
  std::vector<double> target_re, target_im, target_power;
};

/// Rounds of one solution after the other. A start of its own is the leading eigenvector of T: its
/// phases are those of the gains whatever the model is, as |M|^2 has no negative entries.
class Rounds {
 public:
  Rounds(const Config& config, RoundKernel kernel, const Equations& equations)
      : config_(config), kernel_(kernel), equations_(equations), w_(config.n_inputs) {}

  void solve(std::int64_t s, bool warm, Solutions& out) {
    const RoundInput in{equations_.target_re(s),
                        equations_.target_im(s),
                        equations_.power(s),
                        n(),
                        equations_.stride(),
                        w_.re.data(),
                        w_.im.data(),
                        w_.power.data()};
    double change = 1;
    int round = 0;
    if (equations_.n_values(s) == 0) {
      out.change[s] = change;
      return;
    }
    if (!warm) start(in, s);
    while (round < config_.max_rounds && change > config_.tolerance) {
      ++round;
      set_power();
      kernel_(in, {w_.target_re.data(), w_.target_im.data(), w_.target_power.data()});
      const double step = update(round % 2 == 0);
      if (round % 2 == 0) change = step;  // odd rounds alone swing between two solutions
    }
    for (std::int64_t a = 0; a < n(); ++a) out.gains[out.at(s, a)] = {w_.re[a], w_.im[a]};
    out.rounds[s] = round;
    out.change[s] = change;
  }

 private:
  std::int64_t n() const { return config_.n_inputs; }

  void set_power() {
    for (std::int64_t a = 0; a < n(); ++a) w_.power[a] = w_.re[a] * w_.re[a] + w_.im[a] * w_.im[a];
  }

  double update(bool mean) {
    const double keep = mean ? 0.5 : 0.0;
    double difference = 0, size = 0;
    for (std::int64_t a = 0; a < n(); ++a) {
      const double scale = w_.target_power[a] > 0 ? (1 - keep) / w_.target_power[a] : 0;
      const double alive = w_.target_power[a] > 0 ? keep : 0;
      const double re = scale * w_.target_re[a] + alive * w_.re[a];
      const double im = scale * w_.target_im[a] + alive * w_.im[a];
      difference += (re - w_.re[a]) * (re - w_.re[a]) + (im - w_.im[a]) * (im - w_.im[a]);
      size += re * re + im * im;
      w_.re[a] = re;
      w_.im[a] = im;
    }
    return size > 0 ? std::sqrt(difference / size) : 1;
  }

  /// Power iteration of T from the input with the largest sum of |T|.
  void start(const RoundInput& in, std::int64_t s) {
    constexpr int kStartRounds = 6;
    std::int64_t best = 0;
    double largest = -1, power = 0;
    for (std::int64_t a = 0; a < n(); ++a) {
      double sum = 0;
      for (std::int64_t b = 0; b < n(); ++b) {
        sum += std::abs(equations_.target(s, a, b));
        power += equations_.power(s, a, b);
      }
      if (sum > largest) best = a, largest = sum;
    }
    for (std::int64_t a = 0; a < n(); ++a) {
      const cf64 t = a == best ? cf64(1) : equations_.target(s, a, best);
      set_phase(a, t.real(), t.imag());
    }
    double product = 0;
    for (int k = 0; k < kStartRounds; ++k) {
      kernel_(in, {w_.target_re.data(), w_.target_im.data(), w_.target_power.data()});
      product = 0;
      for (std::int64_t a = 0; a < n(); ++a) {
        product += w_.re[a] * w_.target_re[a] + w_.im[a] * w_.target_im[a];
        set_phase(a, w_.target_re[a], w_.target_im[a]);
      }
    }
    const double amplitude = power > 0 && product > 0 ? std::sqrt(product / power) : 0;
    for (std::int64_t a = 0; a < n(); ++a) {
      w_.re[a] *= amplitude;
      w_.im[a] *= amplitude;
    }
  }

  void set_phase(std::int64_t a, double re, double im) {
    const double size = std::hypot(re, im);
    w_.re[a] = size > 0 ? re / size : 0;
    w_.im[a] = size > 0 ? im / size : 0;
  }

  const Config& config_;
  RoundKernel kernel_;
  const Equations& equations_;
  Workspace w_;
};

class CpuSolver final : public Solver {
 public:
  CpuSolver(const Config& config, std::string name, RoundKernel kernel)
      : config_(config),
        name_("calibrate/" + std::move(name)),
        kernel_(kernel),
        reference_(make_reference(config)) {}
  std::string_view implementation() const override { return name_; }
  const Config& config() const override { return config_; }

  void execute(Queue& queue, const Equations& equations, Solutions& solutions) override {
    // The eigenvector takes a few rounds of one matrix: nothing to gain.
    if (config_.method == Method::eigenvector)
      return reference_->execute(queue, equations, solutions);
    resize(config_, equations, solutions);
    const std::int64_t n_blocks = (config_.n_solutions + kBlock - 1) / kBlock;
    queue.parallel_for(n_blocks, [&](std::int64_t block) {
      Rounds rounds(config_, kernel_, equations);
      bool warm = false;
      const std::int64_t last = std::min(config_.n_solutions, (block + 1) * kBlock);
      for (std::int64_t s = block * kBlock; s < last; ++s) {
        rounds.solve(s, warm, solutions);
        finish_solution(equations, config_, s, solutions);
        warm = config_.from_neighbor && solutions.change[s] <= config_.tolerance;
      }
    });
  }

 private:
  Config config_;
  std::string name_;
  RoundKernel kernel_;
  std::unique_ptr<Solver> reference_;
};

}  // namespace

std::unique_ptr<Solver> make_cpu(const Config& config, std::string name, RoundKernel kernel) {
  return std::make_unique<CpuSolver>(config, std::move(name), kernel);
}

}  // namespace ryle::calibrate::detail
