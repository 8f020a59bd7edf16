// SPDX-License-Identifier: BSD-3-Clause
// Detection on prefix sums: a boxcar is one subtraction. The largest boxcar of 64 starts is
// compared with an integer threshold; only where it is reached are starts looked at one by one.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "ryle/device/buffer.hpp"
#include "ryle/engine/search/cpu_kernel.hpp"
#include "ryle/engine/search/detect_common.hpp"
#include "ryle/engine/search/tasks.hpp"

namespace ryle::search::detail {
namespace {

constexpr std::int64_t kTrialsPerTask = 16;
constexpr std::int64_t kPad = 2 * kMaxWidth + 128;

class Cpu final : public Detector {
 public:
  Cpu(Queue& queue, const DetectConfig& config, const CpuKernel& kernel)
      : config_(config),
        kernel_(kernel),
        octaves_(octaves(boxcar_widths(config.max_width))),
        statistics_(static_cast<std::size_t>(config.n_trials)),
        scratch_stride_((config.max_columns + kPad + 15) / 16 * 16),
        prefix_(scratch_stride_ * queue.n_workers()),
        halved_(scratch_stride_ * queue.n_workers()),
        maxima_((config.max_columns / 64 + 2) * queue.n_workers()),
        hits_(static_cast<std::size_t>(queue.n_workers()),
              std::vector<char>(static_cast<std::size_t>(config.max_columns / 64 + 2))),
        tokens_(static_cast<std::size_t>((config.n_trials + kTrialsPerTask - 1) / kTrialsPerTask)) {
  }

  void execute(Queue& queue, const DetectInput& in, std::vector<Token>& tokens) override {
    for_each_task(queue, static_cast<std::int64_t>(tokens_.size()),
                  [&](std::int64_t slot, std::int64_t task) {
                    auto& list = tokens_[static_cast<std::size_t>(task)];
                    list.clear();
                    const std::int64_t end =
                        std::min(config_.n_trials, (task + 1) * kTrialsPerTask);
                    for (std::int64_t trial = task * kTrialsPerTask; trial < end; ++trial) {
                      if (config_.format == SumFormat::u16) {
                        run(in, static_cast<const std::uint16_t*>(in.sums) + trial * in.stride,
                            trial, slot, list);
                      } else {
                        run(in, static_cast<const std::uint32_t*>(in.sums) + trial * in.stride,
                            trial, slot, list);
                      }
                    }
                  });
    for (const auto& list : tokens_) tokens.insert(tokens.end(), list.begin(), list.end());
  }
  const std::vector<SeriesStatistics>& statistics() const override { return statistics_; }
  std::string_view implementation() const override { return kernel_.name; }

 private:
  struct Row {
    const DetectInput& in;
    const float* weights;  // of this trial, or nullptr
    std::int64_t trial;
    SeriesStatistics s;
    std::int64_t center;  // taken off before the prefix sums
    double least_weight;  // among the searched blocks
  };

  void moments(const std::uint16_t* x, std::int64_t n, Moments& m) const {
    std::int64_t sums[3] = {m.n, m.sum, m.squares};
    kernel_.moments_u16(x, n, m.center, m.clip, sums);
    std::tie(m.n, m.sum, m.squares) = std::tie(sums[0], sums[1], sums[2]);
  }
  void moments(const std::uint32_t* x, std::int64_t n, Moments& m) const {
    std::int64_t sums[3] = {m.n, m.sum, m.squares};
    kernel_.moments_u32(x, n, m.center, m.clip, sums);
    std::tie(m.n, m.sum, m.squares) = std::tie(sums[0], sums[1], sums[2]);
  }
  void prefix(const std::uint16_t* x, std::int64_t n, std::int32_t center, std::int32_t* to) const {
    kernel_.prefix_u16(x, n, center, to);
  }
  void prefix(const std::uint32_t* x, std::int64_t n, std::int32_t center, std::int32_t* to) const {
    kernel_.prefix_u32(x, n, center, to);
  }

  /// Calls body(first, end) for the runs of columns statistics are taken from, cut at 64.
  template <class Body>
  static void for_stat_runs(const DetectInput& in, const float* weights, double least,
                            const Body& body) {
    if (weights == nullptr) {
      if (in.stat_end > in.stat_first) body(in.stat_first, in.stat_end, 1.0);
      return;
    }
    for (std::int64_t t = in.stat_first; t < in.stat_end;) {
      const std::int64_t end = std::min(in.stat_end, (t / 64 + 1) * 64);
      const auto w = static_cast<double>(weights[t / 64]);
      if (least > 0 && w >= least) body(t, end, w);
      t = end;
    }
  }

  template <class T>
  SeriesStatistics measure(const DetectInput& in, const T* x, const float* weights,
                           Moments& m) const {
    double most = weights == nullptr ? 1.0 : 0.0;
    if (weights != nullptr)
      for (std::int64_t b = in.stat_first / 64;
           b <= (in.stat_end - 1) / 64 && in.stat_end > in.stat_first; ++b)
        most = std::max(most, static_cast<double>(weights[b]));
    std::int64_t n = 0;
    double total = 0;
    for_stat_runs(in, weights, 0.75 * most, [&](std::int64_t first, std::int64_t end, double w) {
      n += end - first;
      total += w * static_cast<double>(end - first);
    });
    const std::int64_t step = std::max<std::int64_t>(1, (n + 511) / 512);
    std::vector<std::int64_t> sample;
    sample.reserve(512);
    std::int64_t k = 0;  // columns so far; every step-th is taken
    for_stat_runs(in, weights, 0.75 * most, [&](std::int64_t first, std::int64_t end, double) {
      for (std::int64_t t = first + (step - k % step) % step; t < end; t += step)
        sample.push_back(static_cast<std::int64_t>(x[t]));
      k += end - first;
    });
    robust_start(sample, m);
    for_stat_runs(in, weights, 0.75 * most, [&](std::int64_t first, std::int64_t end, double) {
      moments(x + first, end - first, m);
    });
    SeriesStatistics s = unclipped(m);
    if (n > 0) s.sigma /= std::sqrt(total / static_cast<double>(n));
    return s;
  }

  template <class T>
  void run(const DetectInput& in, const T* x, std::int64_t trial, std::int64_t slot,
           std::vector<Token>& tokens) {
    const float* weights = in.weights == nullptr ? nullptr : in.weights + trial * in.weight_stride;
    Moments m;
    const SeriesStatistics s = measure(in, x, weights, m);
    statistics_[static_cast<std::size_t>(trial)] = s;
    if (!(s.sigma > 0)) return;
    Row row{in, weights, trial, s, m.center, 1.0};
    if (weights != nullptr) {
      for (std::int64_t b = in.first_start / 64; b < (in.n_columns + 63) / 64; ++b)
        if (weights[b] >= kMinWeight)
          row.least_weight = std::min(row.least_weight, static_cast<double>(weights[b]));
    }
    std::int32_t* sums = prefix_.data() + slot * scratch_stride_;
    prefix(x, in.n_columns, static_cast<std::int32_t>(m.center), sums);
    std::fill(sums + in.n_columns + 1, sums + std::min(scratch_stride_, in.n_columns + 1 + kPad),
              sums[in.n_columns]);
    const std::int32_t* level = sums + in.first_start;
    std::int32_t* halved = halved_.data() + slot * scratch_stride_;
    std::int64_t n = in.n_columns - in.first_start + 1;
    int halvings = 0;
    for (const Octave& octave : octaves_) {
      for (; halvings < octave.halvings; ++halvings) {  // in place after the first: 2 j >= j
        n = (n - 1) / 2 + 1;
        for (std::int64_t j = 0; j < n; ++j) halved[j] = level[2 * j];
        std::fill(halved + n, halved + std::min(scratch_stride_, n + kPad), halved[n - 1]);
        level = halved;
      }
      search(row, octave, level, slot, tokens);
    }
  }

  /// `level` = prefix sums at the starts first_start + (j << halvings).
  void search(const Row& row, const Octave& octave, const std::int32_t* level, std::int64_t slot,
              std::vector<Token>& tokens) {
    const DetectInput& in = row.in;
    const std::int64_t starts =
        (in.end_start - in.first_start + (std::int64_t{1} << octave.halvings) - 1) >>
        octave.halvings;
    const std::int64_t blocks = (starts + 63) / 64;
    std::int32_t* largest = maxima_.data() + slot * (config_.max_columns / 64 + 2);
    std::vector<char>& hit = hits_[static_cast<std::size_t>(slot)];
    std::fill(hit.begin(), hit.begin() + blocks, char{0});
    for (const std::int32_t width : octave.widths) {
      kernel_.block_maxima(level, width, blocks, largest);
      const double full = static_cast<double>(width) * std::ldexp(1.0, octave.halvings);
      // Safe by one count against the rounding of the double expression below.
      const double needed = full * (row.s.mu - static_cast<double>(row.center)) +
                            config_.threshold * row.s.sigma * std::sqrt(full * row.least_weight) -
                            1;
      const auto limit =
          static_cast<std::int32_t>(std::clamp(std::floor(needed), -2147483647.0, 2147483647.0));
      char* hits = hit.data();
      for (std::int64_t b = 0; b < blocks; ++b)
        hits[b] = static_cast<char>(hits[b] | (largest[b] >= limit));
    }
    for (std::int64_t b = 0; b < blocks; ++b) {
      if (hit[static_cast<std::size_t>(b)])
        scan(row, octave, level, b * 64, std::min(starts, (b + 1) * 64), tokens);
    }
  }

  void scan(const Row& row, const Octave& octave, const std::int32_t* level, std::int64_t first,
            std::int64_t end, std::vector<Token>& tokens) const {
    Token best;
    for (std::int64_t j = first; j < end; ++j) {
      const std::int64_t t = row.in.first_start + (j << octave.halvings);
      for (const std::int32_t narrow : octave.widths) {
        const std::int64_t width = static_cast<std::int64_t>(narrow) << octave.halvings;
        const double w =
            row.weights == nullptr ? 1.0 : static_cast<double>(row.weights[(t + width / 2) / 64]);
        if (w < static_cast<double>(kMinWeight)) continue;
        const std::int64_t sum = std::int64_t{level[j + narrow]} - level[j] + width * row.center;
#if RYLE_MUTANT == 954
        const double snr = (static_cast<double>(sum) - static_cast<double>(width) * row.s.mu) /
                           (row.s.sigma * static_cast<double>(width));
#else
        const double snr = (static_cast<double>(sum) - static_cast<double>(width) * row.s.mu) /
                           (row.s.sigma * std::sqrt(static_cast<double>(width) * w));
#endif
        if (snr >= config_.threshold && static_cast<float>(snr) > best.snr)
          best = {row.in.first_tick + t, static_cast<std::int32_t>(width),
                  static_cast<std::int32_t>(row.trial), static_cast<float>(snr)};
      }
    }
    if (best.width > 0) tokens.push_back(best);
  }

  DetectConfig config_;
  const CpuKernel& kernel_;
  std::vector<Octave> octaves_;
  std::vector<SeriesStatistics> statistics_;
  std::int64_t scratch_stride_;
  Buffer<std::int32_t> prefix_, halved_, maxima_;
  std::vector<std::vector<char>> hits_;  // [slot][block]
  std::vector<std::vector<Token>> tokens_;
};

}  // namespace

std::unique_ptr<Detector> make_detector_cpu(Queue& queue, const DetectConfig& config,
                                            const CpuKernel& kernel) {
  return std::make_unique<Cpu>(queue, config, kernel);
}

}  // namespace ryle::search::detail
