// SPDX-License-Identifier: BSD-3-Clause
// Detection in two steps. All boxcars are formed 16 bits wide and compared with a limit that none
// worth a token can miss (cpu_boxcars.inc.hpp); only blocks of 64 starts above it are looked at one
// by one, on exact prefix sums.
#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "ryle/device/buffer.hpp"
#include "ryle/device/tasks.hpp"
#include "ryle/engine/search/cpu_kernel.hpp"
#include "ryle/engine/search/detect_common.hpp"

namespace ryle::search::detail {
namespace {

constexpr std::int64_t kTrialsPerTask = 16;
constexpr std::int64_t kSamples = 512;  // for median and MAD

constexpr std::int64_t rounded_up(std::int64_t n) { return (n + 63) / 64 * 64; }

class CpuDetector final : public Detector {
 public:
  CpuDetector(Queue& queue, const DetectConfig& config, const CpuKernel& kernel)
      : config_(config),
        kernel_(kernel),
        name_(std::string("search/cpu/") + kernel.name),
        octaves_(octaves(boxcar_widths(config.max_width))),
        statistics_(static_cast<std::size_t>(config.n_trials)),
        row_(rounded_up(config.max_columns) + 64 + 2 * kBoxcarPad),
        blocks_(config.max_columns / 64 + 2),
        prefix_(row_ * queue.n_workers()),
        above_(2 * row_ * queue.n_workers()),
        hits_(kFullOctaves * blocks_ * queue.n_workers()),
        samples_(kSamples * queue.n_workers()),
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
  std::string_view implementation() const override { return name_; }

 private:
  /// One trial. Exact prefix sums are made when the first block asks for them.
  template <class T>
  struct Row {
    const DetectInput& in;
    const T* x;
    const float* weights;  // of this trial, or nullptr
    std::int64_t trial;
    std::int64_t slot;
    SeriesStatistics s;
    std::int64_t center;  // taken off before the prefix sums
    double least_weight;  // among the searched blocks
    std::uint32_t base;   // taken off before the 16-bit sums
    int shift;            // and their unit
    const std::int32_t* prefix;
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
  void above(const std::uint16_t* x, std::int64_t n, std::uint32_t base, int shift,
             std::uint16_t* to) const {
    kernel_.above_u16(x, n, base, shift, to);
  }
  void above(const std::uint32_t* x, std::int64_t n, std::uint32_t base, int shift,
             std::uint16_t* to) const {
    kernel_.above_u32(x, n, base, shift, to);
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
                           std::int64_t slot, Moments& m) const {
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
    std::uint32_t* const sample = samples_.data() + slot * kSamples;
    std::int64_t n_samples = 0, k = 0;  // k columns so far; every step-th is taken
    for_stat_runs(in, weights, 0.75 * most, [&](std::int64_t first, std::int64_t end, double) {
      for (std::int64_t t = first + (step - k % step) % step; t < end; t += step)
        sample[n_samples++] = x[t];
      k += end - first;
    });
    start(sample, n_samples, m);
    std::int64_t run = 0, run_end = 0;  // neighbouring blocks together
    for_stat_runs(in, weights, 0.75 * most, [&](std::int64_t first, std::int64_t end, double) {
      if (first != run_end) {
        moments(x + run, run_end - run, m);
        run = first;
      }
      run_end = end;
    });
    moments(x + run, run_end - run, m);
    SeriesStatistics s = unclipped(m);
    if (n > 0) s.sigma /= std::sqrt(total / static_cast<double>(n));
    return s;
  }

  /// As robust_start().
  void start(std::uint32_t* values, std::int64_t n, Moments& m) const {
    m = {};
    if (n < 16) return;
    const std::uint32_t middle = kernel_.ranked(values, n, n / 2);
    std::uint32_t farthest = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      values[k] = values[k] > middle ? values[k] - middle : middle - values[k];
      farthest = std::max(farthest, values[k]);
    }
    m.center = middle;
    m.clip = clip_of(kernel_.ranked(values, n, n / 2), farthest);
  }

  template <class T>
  void run(const DetectInput& in, const T* x, std::int64_t trial, std::int64_t slot,
           std::vector<Token>& tokens) {
    const float* weights = in.weights == nullptr ? nullptr : in.weights + trial * in.weight_stride;
    Moments m;
    const SeriesStatistics s = measure(in, x, weights, slot, m);
    statistics_[static_cast<std::size_t>(trial)] = s;
    if (!(s.sigma > 0)) return;
    Row<T> row{in, x, weights, trial, slot, s, m.center, 1.0, 0, 0, nullptr};
    if (weights != nullptr) {
      for (std::int64_t b = in.first_start / 64; b < (in.n_columns + 63) / 64; ++b)
        if (weights[b] >= kMinWeight)
          row.least_weight = std::min(row.least_weight, static_cast<double>(weights[b]));
    }
    set_unit(row);
    std::uint16_t* const memory = above_.data() + 2 * slot * row_;
    std::uint16_t* values[2] = {memory, memory + row_};  // of one level and the next
    std::int64_t n = in.n_columns - in.first_start;
    above(x + in.first_start, n, row.base, row.shift, values[0]);
    std::fill_n(values[0] + n, rounded_up(n) - n + kBoxcarPad, std::uint16_t{0});
    int halvings = 0;
    for (std::size_t first = 0; first < octaves_.size();) {
      std::size_t end = first;
      while (end < octaves_.size() && octaves_[end].halvings == octaves_[first].halvings) ++end;
      for (; halvings < octaves_[first].halvings; ++halvings) {
        n = (n + 1) / 2;
        kernel_.halve(values[0], n, values[1]);
        std::fill_n(values[1] + n, rounded_up(n) - n + kBoxcarPad, std::uint16_t{0});
        std::swap(values[0], values[1]);
      }
      search(row, first, end, values[0], tokens);
      first = end;
    }
  }

  /// 16-bit values are sums above mu - 4 sigma: 32 of them at the threshold fit.
  template <class T>
  void set_unit(Row<T>& row) const {
    row.base = static_cast<std::uint32_t>(std::max(0.0, std::floor(row.s.mu - 4 * row.s.sigma)));
    const double most = 32 * (row.s.mu - static_cast<double>(row.base)) +
                        config_.threshold * row.s.sigma * std::sqrt(32.0);
    while (std::ldexp(most, -row.shift) > 60000 && row.shift < 31) ++row.shift;
  }

  /// Smallest sum that a boxcar worth a token can have, less one: rounding is always upwards.
  template <class T>
  std::uint16_t below(const Row<T>& row, const Octave& octave, std::int32_t narrow) const {
    const double full = std::ldexp(static_cast<double>(narrow), octave.halvings);
    // Safe by one count against the rounding of the double expression of scan().
    const double needed = full * (row.s.mu - static_cast<double>(row.base)) +
                          config_.threshold * row.s.sigma * std::sqrt(full * row.least_weight) - 1;
#if RYLE_MUTANT == 1002
    const double limit = std::floor(std::ldexp(needed, -row.shift));
#else
    const double limit = std::floor(std::ldexp(needed, -row.shift - octave.halvings));
#endif
    return static_cast<std::uint16_t>(std::clamp(limit, 1.0, 65535.0) - 1);
  }

  /// Octaves [first, end) of one level; `values` at the starts first_start + (j << halvings).
  template <class T>
  void search(Row<T>& row, std::size_t first, std::size_t end, const std::uint16_t* values,
              std::vector<Token>& tokens) {
    const int halvings = octaves_[first].halvings;
    const DetectInput& in = row.in;
    const std::int64_t starts =
        (in.end_start - in.first_start + (std::int64_t{1} << halvings) - 1) >> halvings;
    const std::int64_t blocks = (starts + 63) / 64;
    std::uint8_t* const hits = hits_.data() + row.slot * kFullOctaves * blocks_;
    std::uint16_t limits[16];
    std::fill_n(limits, 16, std::uint16_t{65535});  // of no interest
    for (std::size_t o = first; o < end; ++o)
      for (const std::int32_t narrow : octaves_[o].widths)
        limits[std::find(kBoxcarWidths, kBoxcarWidths + 15, narrow) - kBoxcarWidths] =
            below(row, octaves_[o], narrow);
    const BoxcarScreen screen{values, blocks, limits, hits, blocks_};
    halvings == 0 ? kernel_.screen_full(screen) : kernel_.screen_halved(screen);
    for (std::size_t o = first; o < end; ++o) {
      const std::uint8_t* hit = hits + static_cast<std::int64_t>(o - first) * blocks_;
      for (std::int64_t b = 0; b < blocks; ++b)
        if (hit[b] != 0) scan(row, octaves_[o], b * 64, std::min(starts, (b + 1) * 64), tokens);
    }
  }

  template <class T>
  void scan(Row<T>& row, const Octave& octave, std::int64_t first, std::int64_t end,
            std::vector<Token>& tokens) {
    if (row.prefix == nullptr) {
      std::int32_t* const sums = prefix_.data() + row.slot * row_;
      prefix(row.x, row.in.n_columns, static_cast<std::int32_t>(row.center), sums);
      row.prefix = sums;
    }
    Token best;
    for (std::int64_t j = first; j < end; ++j) {
      const std::int64_t t = row.in.first_start + (j << octave.halvings);
      for (const std::int32_t narrow : octave.widths) {
        const std::int64_t width = static_cast<std::int64_t>(narrow) << octave.halvings;
        const double w =
            row.weights == nullptr ? 1.0 : static_cast<double>(row.weights[(t + width / 2) / 64]);
        if (w < static_cast<double>(kMinWeight)) continue;
        const std::int64_t sum =
            std::int64_t{row.prefix[t + width]} - row.prefix[t] + width * row.center;
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
  std::string name_;
  std::vector<Octave> octaves_;
  std::vector<SeriesStatistics> statistics_;
  std::int64_t row_, blocks_;
  Buffer<std::int32_t> prefix_;
  Buffer<std::uint16_t> above_;  // [slot][level or next]
  Buffer<std::uint8_t> hits_;    // [slot][octave][block]
  Buffer<std::uint32_t> samples_;
  std::vector<std::vector<Token>> tokens_;
};

}  // namespace

std::unique_ptr<Detector> make_detector_cpu(Queue& queue, const DetectConfig& config,
                                            const CpuKernel& kernel) {
  return std::make_unique<CpuDetector>(queue, config, kernel);
}

}  // namespace ryle::search::detail
