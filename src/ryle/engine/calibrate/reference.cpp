// SPDX-License-Identifier: BSD-3-Clause
// The equations as they stand, in double, one pair after the other.
#include "ryle/engine/calibrate/reference.hpp"

#include <cmath>

#include "ryle/core/error.hpp"

namespace ryle::calibrate::detail {
namespace {

class Reference final : public Solver {
 public:
  explicit Reference(const Config& config) : config_(config) {}
  std::string_view implementation() const override { return "calibrate/reference"; }
  const Config& config() const override { return config_; }

  void execute(Queue&, const Equations& equations, Solutions& solutions) override {
    resize(config_, equations, solutions);
    for (std::int64_t s = 0; s < equations.n_solutions(); ++s) {
      if (equations.n_values(s) == 0) continue;  // resize() has flagged it
      config_.method == Method::stefcal ? stefcal(equations, s, solutions)
                                        : eigenvector(equations, s, solutions);
      finish_solution(equations, config_, s, solutions);
    }
  }

 private:
  std::int64_t n() const { return config_.n_inputs; }

  /// Phases against the input with the largest sum of |T|, amplitudes of the model alone.
  std::vector<cf64> start(const Equations& e, std::int64_t s) const {
    std::int64_t best = 0;
    double largest = -1, target = 0, power = 0;
    for (std::int64_t a = 0; a < n(); ++a) {
      double sum = 0;
      for (std::int64_t b = 0; b < n(); ++b) {
        sum += std::abs(e.target(s, a, b));
        power += e.power(s, a, b);
      }
      target += sum;
      if (sum > largest) best = a, largest = sum;
    }
    std::vector<cf64> g(n());
    const double amplitude = power > 0 ? std::sqrt(target / power) : 0;
    for (std::int64_t a = 0; a < n(); ++a) {
      const double phase_rad = a == best ? 0.0 : std::arg(e.target(s, a, best));
      g[a] = e.n_values(s, a) > 0 ? std::polar(amplitude, phase_rad) : cf64{};
    }
    return g;
  }

  void stefcal(const Equations& e, std::int64_t s, Solutions& out) const {
    std::vector<cf64> g = start(e, s), next(g.size());
    double change = 1;
    int round = 0;
    while (round < config_.max_rounds && change > config_.tolerance) {
      ++round;
      double difference = 0, size = 0;
      for (std::int64_t a = 0; a < n(); ++a) {
        cf64 target{};
        double power = 0;
        for (std::int64_t b = 0; b < n(); ++b) {
          target += e.target(s, a, b) * g[b];
          power += e.power(s, a, b) * std::norm(g[b]);
        }
        next[a] = power > 0 ? target / power : cf64{};
        if (round % 2 == 0) next[a] = 0.5 * (next[a] + g[a]);
        difference += std::norm(next[a] - g[a]);
        size += std::norm(next[a]);
      }
      g = next;
      // Odd rounds alone swing between two solutions.
      if (round % 2 == 0) change = size > 0 ? std::sqrt(difference / size) : 1;
    }
    store(g, s, round, change, out);
  }

  void eigenvector(const Equations& e, std::int64_t s, Solutions& out) const {
    std::vector<cf64> g = start(e, s), next(g.size());
    double change = 1;
    int round = 0;
    for (; round < config_.max_rounds && change > config_.tolerance; ++round) {
      double norm = 0, product = 0, difference = 0;
      for (const cf64& v : g) norm += std::norm(v);
      for (std::int64_t a = 0; a < n(); ++a) {
        next[a] = 0;
        for (std::int64_t b = 0; b < n(); ++b)  // what is not measured is that of g conj(g)
          next[a] += e.power(s, a, b) > 0 ? e.target(s, a, b) / e.power(s, a, b) * g[b]
                                          : g[a] * std::norm(g[b]);
        product += (std::conj(g[a]) * next[a]).real();
      }
      if (!(norm > 0) || !(product > 0)) break;
      double length = 0;
      for (const cf64& v : next) length += std::norm(v);
      for (std::int64_t a = 0; a < n(); ++a) {
        const cf64 v = next[a] * std::sqrt(product / norm / length);  // lambda = |g|^2
        difference += std::norm(v - g[a]);
        g[a] = v;
      }
      change = std::sqrt(difference / norm);
    }
    store(g, s, round, change, out);
  }

  static void store(const std::vector<cf64>& g, std::int64_t s, int rounds, double change,
                    Solutions& out) {
    std::copy(g.begin(), g.end(), out.gains.begin() + static_cast<std::ptrdiff_t>(out.at(s, 0)));
    out.rounds[s] = rounds;
    out.change[s] = change;
  }

  Config config_;
};

}  // namespace

std::unique_ptr<Solver> make_reference(const Config& config) {
  return std::make_unique<Reference>(config);
}

}  // namespace ryle::calibrate::detail
