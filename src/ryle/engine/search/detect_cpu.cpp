// SPDX-License-Identifier: BSD-3-Clause
// Detection in two steps. A screen that no boxcar worth a hit can pass below: sums in bytes, each
// sample rounded up (cpu/boxcars.inc.hpp). Only blocks of 64 starts above its limits are looked at
// one by one, on exact prefix sums.
//
// A cell of level d is 2^d samples: what they hold above offset[d], rounded up to its unit. Widths
// to 7 are summed from cells of level 0. A wider boxcar holds whole cells of 2 (widths to 16) or 4
// starts, and at both ends together 1 to 4 starts more; those are at most as large as the largest
// ones of the neighborhood: 512 starts, and as many before and behind.
#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "ryle/device/buffer.hpp"
#include "ryle/device/tasks.hpp"
#include "ryle/engine/search/cpu/kernel.hpp"
#include "ryle/engine/search/detect_common.hpp"

namespace ryle::search::detail {
namespace {

constexpr std::int64_t kTrialsPerTask = 16;
constexpr std::int64_t kSamples = 512;  // for median and MAD
constexpr std::size_t kLevels = 9;      // of cells: kMaxWidth is 32 << 6, and 2 beyond

constexpr std::int64_t rounded_up(std::int64_t n) { return (n + 63) / 64 * 64; }

class CpuDetector final : public Detector {
 public:
  CpuDetector(Queue& queue, const DetectConfig& config, const CpuKernel& kernel)
      : config_(config),
        kernel_(kernel),
        name_(std::string("search/cpu/") + kernel.name),
        octaves_(octaves(boxcar_widths(config.max_width))),
        statistics_(config.n_trials),
        row_(rounded_up(config.max_columns) + 64),
        blocks_(config.max_columns / 64 + 2),
        segments_(config.max_columns / kStartsPerSegment + 8),
        prefix_(row_ * queue.n_workers()),
        block_hits_(kFullOctaves * blocks_ * queue.n_workers()),
        below_(8 * segments_ * queue.n_workers()),
        samples_(kSamples * queue.n_workers()),
        hits_((config.n_trials + kTrialsPerTask - 1) / kTrialsPerTask) {
    for (int d = 0; d < octaves_.back().halvings + 3; ++d) {
      place_.push_back(cell_bytes_);
      cell_bytes_ += rounded_up((config.max_columns >> d) + 1) + kCellPad + 64;
    }
    above_stride_ = rounded_up(config.max_columns) + 64;
    above_ = Buffer<std::uint16_t>(2 * above_stride_ * queue.n_workers());
    cells_ = Buffer<std::uint8_t>(cell_bytes_ * queue.n_workers());
    maxima_ = Buffer<std::uint8_t>(static_cast<std::int64_t>(place_.size()) * segments_ *
                                   queue.n_workers());
  }

  void execute(Queue& queue, const DetectInput& in, std::vector<Hit>& hits) override {
    for_each_task(
        queue, static_cast<std::int64_t>(hits_.size()), [&](std::int64_t slot, std::int64_t task) {
          auto& list = hits_[task];
          list.clear();
          const std::int64_t end = std::min(config_.n_trials, (task + 1) * kTrialsPerTask);
          for (std::int64_t trial = task * kTrialsPerTask; trial < end; ++trial) {
            if (config_.format == SumFormat::u16) {
              run(in, static_cast<const std::uint16_t*>(in.sums) + trial * in.stride, trial, slot,
                  list);
            } else {
              run(in, static_cast<const std::uint32_t*>(in.sums) + trial * in.stride, trial, slot,
                  list);
            }
          }
        });
    for (const auto& list : hits_) hits.insert(hits.end(), list.begin(), list.end());
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
    double min_weight;    // among the searched blocks
    std::uint32_t base;   // taken off before the screen
    // Samples of a cell hold at most base + offset + unit x cell, unless it is 255.
    double offset[kLevels], unit[kLevels];
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
  static void for_stat_runs(const DetectInput& in, const float* weights, double minimum,
                            const Body& body) {
    if (weights == nullptr) {
      if (in.stat_end > in.stat_first)
        body(in.stat_first, in.stat_end, static_cast<double>(in.level));
      return;
    }
    for (std::int64_t t = in.stat_first; t < in.stat_end;) {
      const std::int64_t end = std::min(in.stat_end, (t / 64 + 1) * 64);
      const auto w = static_cast<double>(weights[t / 64]);
      if (minimum > 0 && w >= minimum) body(t, end, w);
      t = end;
    }
  }

  template <class T>
  SeriesStatistics measure(const DetectInput& in, const T* x, const float* weights,
                           std::int64_t slot, Moments& m) const {
    double maximum = weights == nullptr ? static_cast<double>(in.level) : 0.0;
    if (weights != nullptr)
      for (std::int64_t b = in.stat_first / 64;
           b <= (in.stat_end - 1) / 64 && in.stat_end > in.stat_first; ++b)
        maximum = std::max(maximum, static_cast<double>(weights[b]));
    std::int64_t n = 0;
    double total = 0;
    for_stat_runs(in, weights, 0.75 * maximum, [&](std::int64_t first, std::int64_t end, double w) {
      n += end - first;
      total += w * static_cast<double>(end - first);
    });
    const std::int64_t step = std::max<std::int64_t>(1, (n + 511) / 512);
    std::uint32_t* const sample = samples_.data() + slot * kSamples;
    std::int64_t n_samples = 0, k = 0;  // k columns so far; every step-th is taken
    for_stat_runs(in, weights, 0.75 * maximum, [&](std::int64_t first, std::int64_t end, double) {
      for (std::int64_t t = first + (step - k % step) % step; t < end; t += step)
        sample[n_samples++] = x[t];
      k += end - first;
    });
    start(sample, n_samples, m);
    std::int64_t run = 0, run_end = 0;  // neighbouring blocks together
    for_stat_runs(in, weights, 0.75 * maximum, [&](std::int64_t first, std::int64_t end, double) {
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
           std::vector<Hit>& hits) {
    const float* weights = in.weights == nullptr ? nullptr : in.weights + trial * in.weight_stride;
    Moments m;
    const SeriesStatistics s = measure(in, x, weights, slot, m);
    statistics_[trial] = s;
    if (!(s.sigma > 0)) return;
    Row<T> row{in, x, weights, trial, slot, s, m.center, 1.0, 0, {}, {}, nullptr};
    if (weights == nullptr) {
      if (in.level >= kMinWeight) row.min_weight = std::min(1.0, static_cast<double>(in.level));
    } else {
      for (std::int64_t b = in.first_start / 64; b < (in.n_columns + 63) / 64; ++b)
        if (weights[b] >= kMinWeight)
          row.min_weight = std::min(row.min_weight, static_cast<double>(weights[b]));
    }
    make_cells(row);
    for (std::size_t first = 0; first < octaves_.size();) {
      std::size_t end = first;
      while (end < octaves_.size() && octaves_[end].halvings == octaves_[first].halvings) ++end;
      search(row, first, end, hits);
      first = end;
    }
  }

  /// A quarter of the next series, on its way from beyond the second-level cache while this one is
  /// searched: all at once would wait for one another.
  template <class T>
  void fetch_next(const Row<T>& row, std::size_t quarter) const {
    if (quarter > 3 || row.trial + 1 == config_.n_trials) return;
    const T* const next = row.x + row.in.stride;
    const auto at = [&](std::size_t k) {
      return row.in.n_columns * static_cast<std::int64_t>(k) / 4;
    };
    for (std::int64_t t = at(quarter); t < at(quarter + 1); t += 64 / std::int64_t{sizeof(T)})
      __builtin_prefetch(next + t, 0, 2);
  }

  std::uint8_t* cells_of(std::int64_t slot, std::size_t level) const {
    return cells_.data() + slot * cell_bytes_ + place_[level];
  }
  /// Largest cells of the segments of a level; one before the first is 0, and so are those behind.
  std::uint8_t* maxima_of(std::int64_t slot, std::size_t level) const {
    return maxima_.data() +
           (slot * static_cast<std::int64_t>(place_.size()) + static_cast<std::int64_t>(level)) *
               segments_ +
           1;
  }

  /// Smallest sum less its base that a boxcar worth a hit can have. Safe by one count against the
  /// rounding of the double expression of scan().
  template <class T>
  double needed(const Row<T>& row, std::int64_t width) const {
    const auto full = static_cast<double>(width);
    return full * (row.s.mu - static_cast<double>(row.base)) +
           config_.threshold * row.s.sigma * std::sqrt(full * row.min_weight) - 1;
  }

  /// Scale of cells such that `maximum` above a base is 240.
  static std::uint16_t scale_of(double maximum) {
    return static_cast<std::uint16_t>(std::clamp(240 * 65536 / maximum, 256.0, 65535.0));
  }

  /// Bases lie 2.5 sigma of a cell below its mean: 0.002 sigma is lost to what lies below. The
  /// units let 7 cells of level 0, and 8 of the others, reach the threshold.
  template <class T>
  void make_cells(Row<T>& row) const {
    const T* const x = row.x + row.in.first_start;
    std::int64_t n = row.in.n_columns - row.in.first_start;
    row.base = static_cast<std::uint32_t>(std::max(0.0, std::floor(row.s.mu - 2.5 * row.s.sigma)));
    const double mean = row.s.mu - static_cast<double>(row.base);
    double maximum = std::max(1.0, needed(row, 7));
    if constexpr (sizeof(T) > 2)  // nothing may be cut at 16 bits
      maximum = std::max(maximum, static_cast<double>(*std::max_element(x, x + n)) -
                                      static_cast<double>(row.base));
    int shift = 0;
    while (std::ldexp(maximum, -shift) > 60000) ++shift;
    std::uint16_t* const memory = above_.data() + 2 * row.slot * above_stride_;
    std::uint16_t* values[2] = {memory, memory + above_stride_};  // of a level and the next
    for (std::size_t level = 0; level < place_.size(); ++level, ++shift) {
      const auto size = static_cast<double>(std::int64_t{1} << level);
      row.offset[level] = 0;
      maximum = needed(row, 7);
      if (level == 0) {
        above(x, n, row.base, shift, values[0]);
      } else {
        n = (n + 1) / 2;
        const double sigma = row.s.sigma * std::sqrt(size);
        const double base = size * mean - 2.5 * sigma - 2 * row.offset[level - 1];
        const auto less = static_cast<std::uint16_t>(
            std::clamp(std::floor(std::ldexp(base, -shift)), 0.0, 60000.0));
        row.offset[level] =
            2 * row.offset[level - 1] + std::ldexp(static_cast<double>(less), shift);
        maximum = needed(row, std::int64_t{8} << level) - 8 * row.offset[level];
        kernel_.halve(values[0], n, less, values[1]);
        std::swap(values[0], values[1]);
      }
      values[0][n] = 0;  // half of the last pair of an odd number
      const std::uint16_t scale = scale_of(std::ldexp(std::max(1.0, maximum), -shift));
      row.unit[level] = std::ldexp(65536.0 / scale, shift);
      std::uint8_t* const made = cells_of(row.slot, level);
      kernel_.cells(values[0], n, scale, made);
      fetch_next(row, level);
      std::fill_n(made + n, kCellPad, std::uint8_t{0});
      std::uint8_t* const largest = maxima_of(row.slot, level);
      std::fill(largest - 1, largest - 1 + segments_, std::uint8_t{0});
      kernel_.maxima(made, n, largest);
    }
  }

  // Limits are made of 1/256 of a unit, rounded towards more hits.
  static constexpr double kFine = 256;
  static constexpr std::int64_t kNever = std::int64_t{1} << 40;

  /// The least sum of `cells` cells in which a boxcar of `sum` may lie whole.
  template <class T>
  static std::int64_t min_of(const Row<T>& row, double sum, int cells, std::size_t level) {
    if (sum < 0) return kNever;  // of no interest
    return static_cast<std::int64_t>(
        std::floor((sum - cells * row.offset[level]) / row.unit[level] * kFine));
  }
  /// The largest sum that tells of none when up to `rest` lies beyond the cells.
  static std::uint8_t limit_of(std::int64_t minimum, std::int64_t rest) {
    if (minimum == kNever) return 255;
    return static_cast<std::uint8_t>(
        std::clamp<std::int64_t>(((minimum - rest + 255) >> 8) - 1, 0, 254));
  }

  /// What boxcars hold beyond whole cells, in 1/256 of a unit of the cells: `one` start, `three` or
  /// `four`.
  struct Rest {
    std::int64_t one, three, four;
  };
  /// From the largest start and pair of starts: each is at most offset + unit x cell.
  struct RestRule {
    const std::uint8_t *starts, *pairs;
    std::int64_t start_offset, start_unit, pair_offset, pair_unit;

    Rest at(std::int64_t segment) const {
      const std::int64_t largest =
          std::max({starts[segment - 1], starts[segment], starts[segment + 1]});
      const std::int64_t largest_pair = std::max({pairs[segment == 0 ? 0 : (segment - 1) / 2],
                                                  pairs[segment / 2], pairs[(segment + 1) / 2]});
      constexpr std::int64_t kAnything = 1 << 30;  // cut at the top of a byte
      if (std::max(largest, largest_pair) == 255) return {kAnything, kAnything, kAnything};
      const std::int64_t one = start_offset + start_unit * largest;
      const std::int64_t pair = pair_offset + pair_unit * largest_pair;
      // Three starts: one and a pair, in some order. Four: one, a pair, one, or two pairs.
      return {one, one + pair, pair + std::max(2 * one, pair)};
    }
  };
  /// Of the starts of a level, in units of the cells of another.
  template <class T>
  RestRule rest_rule(const Row<T>& row, std::size_t starts, std::size_t level) const {
    const auto fine = [&](double value) {
      return static_cast<std::int64_t>(std::ceil(value / row.unit[level] * kFine));
    };
    return {maxima_of(row.slot, starts),  maxima_of(row.slot, starts + 1),
            fine(row.offset[starts]),     fine(row.unit[starts]),
            fine(row.offset[starts + 1]), fine(row.unit[starts + 1])};
  }

  /// Limits of screen_pairs, 3 4 5 6 7 8 cells of 2 starts; `sums` of kBoxcarWidths.
  template <class T>
  void pair_limits(const Row<T>& row, const double* sums, std::int64_t segments,
                   std::uint8_t* to) const {
    const RestRule rule = rest_rule(row, 0, 1);
    const auto minimum = [&](int index, int cells) { return min_of(row, sums[index], cells, 1); };
    const std::int64_t odd8 = minimum(7, 3), even8 = minimum(7, 4), odd10 = minimum(8, 4);
    const std::int64_t even10 = minimum(8, 5), any11 = minimum(9, 5), any13 = minimum(10, 6);
    const std::int64_t odd16 = minimum(11, 7), even16 = minimum(11, 8);
    for (std::int64_t i = 0; i < segments; ++i, to += 8) {
      const Rest r = rule.at(i);
      to[0] = limit_of(odd8, 2 * r.one);
      to[1] = std::min(limit_of(even8, 0), limit_of(odd10, 2 * r.one));
      to[2] = std::min(limit_of(even10, 0), limit_of(any11, r.one));
      to[3] = limit_of(any13, r.one);
      to[4] = limit_of(odd16, 2 * r.one);
      to[5] = limit_of(even16, 0);
    }
  }
  /// Limits of screen_quads, 4 5 6 7 8 cells of 4 starts of a level.
  template <class T>
  void quad_limits(const Row<T>& row, const double* sums, std::size_t starts, std::int64_t segments,
                   std::uint8_t* to) const {
    const std::size_t level = starts + 2;
    const RestRule rule = rest_rule(row, starts, level);
    std::int64_t minimum[5];
    for (int k = 0; k < 5; ++k)
      minimum[k] = min_of(row, sums[kFirstHalved + std::min(k, 3)], 4 + k, level);
    for (std::int64_t i = 0; i < segments; ++i, to += 8) {
      const Rest r = rule.at(i);
      for (int k = 0; k < 3; ++k) to[k] = limit_of(minimum[k], r.three);
      to[3] = limit_of(minimum[3], r.four);
      to[4] = limit_of(minimum[4], 0);
    }
  }

  /// Which octaves from `first` to `end` (of one level) have blocks that may hold a hit;
  /// block_hits say which.
  template <class T>
  unsigned screen(const Row<T>& row, std::size_t first, std::size_t end, std::int64_t blocks) {
    const int halvings = octaves_[first].halvings;
    double sums[16];
    std::fill_n(sums, 16, -1.0);
    for (std::size_t o = first; o < end; ++o)
      for (const std::int32_t narrow : octaves_[o].widths)
        sums[std::find(kBoxcarWidths, kBoxcarWidths + 15, narrow) - kBoxcarWidths] =
            std::max(0.0, needed(row, std::int64_t{narrow} << halvings));
    std::uint8_t* const block_hits = block_hits_.data() + row.slot * kFullOctaves * blocks_;
    std::fill_n(block_hits, kFullOctaves * blocks_, std::uint8_t{0});
    std::uint8_t* const below = below_.data() + row.slot * 8 * segments_;
    const std::int64_t segments = blocks * 64 / kStartsPerSegment + 1;
    unsigned found = 0;
    if (halvings == 0) {
      for (int k = 0; k < 7; ++k) below[k] = limit_of(min_of(row, sums[k], k + 1, 0), 0);
      found = kernel_.screen_narrow({cells_of(row.slot, 0), blocks, below, block_hits, blocks_});
      if (sums[7] < 0) return found;
      pair_limits(row, sums, segments, below);
      found |= kernel_.screen_pairs(
                   {cells_of(row.slot, 1), blocks, below, block_hits + 3 * blocks_, blocks_})
               << 3;
    }
    if (sums[kFirstHalved] < 0) return found;
    const auto level = static_cast<std::size_t>(halvings);
    quad_limits(row, sums, level, segments, below);
    const int octave = halvings == 0 ? 4 : 0;
    return found | kernel_.screen_quads({cells_of(row.slot, level + 2), blocks, below,
                                         block_hits + octave * blocks_, blocks_})
                       << octave;
  }

  /// Octaves [first, end) of one level, at the starts first_start + (j << halvings).
  template <class T>
  void search(Row<T>& row, std::size_t first, std::size_t end, std::vector<Hit>& hits) {
    const int halvings = octaves_[first].halvings;
    const DetectInput& in = row.in;
    const std::int64_t starts =
        (in.end_start - in.first_start + (std::int64_t{1} << halvings) - 1) >> halvings;
    const std::int64_t blocks = (starts + 63) / 64;
    const unsigned found = screen(row, first, end, blocks);
    for (std::size_t o = first; o < end; ++o) {
      if ((found >> (o - first) & 1) == 0) continue;
      const std::uint8_t* hit = block_hits_.data() + row.slot * kFullOctaves * blocks_ +
                                static_cast<std::int64_t>(o - first) * blocks_;
      for (std::int64_t b = 0; b < blocks; ++b)
        if (hit[b] != 0) scan(row, octaves_[o], b * 64, std::min(starts, (b + 1) * 64), hits);
    }
  }

  template <class T>
  void scan(Row<T>& row, const Octave& octave, std::int64_t first, std::int64_t end,
            std::vector<Hit>& hits) {
    if (row.prefix == nullptr) {
      std::int32_t* const sums = prefix_.data() + row.slot * row_;
      prefix(row.x, row.in.n_columns, static_cast<std::int32_t>(row.center), sums);
      row.prefix = sums;
    }
    Hit best;
    for (std::int64_t j = first; j < end; ++j) {
      const std::int64_t t = row.in.first_start + (j << octave.halvings);
      for (const std::int32_t narrow : octave.widths) {
        const std::int64_t width = static_cast<std::int64_t>(narrow) << octave.halvings;
        const auto w = static_cast<double>(
            row.weights == nullptr ? row.in.level : row.weights[(t + width / 2) / 64]);
        if (w < static_cast<double>(kMinWeight)) continue;
        const std::int64_t sum =
            std::int64_t{row.prefix[t + width]} - row.prefix[t] + width * row.center;
        const double snr = (static_cast<double>(sum) - static_cast<double>(width) * row.s.mu) /
                           (row.s.sigma * std::sqrt(static_cast<double>(width) * w));
        if (snr >= config_.threshold && static_cast<float>(snr) > best.snr)
          best = {row.in.first_tick + t, static_cast<std::int32_t>(width),
                  static_cast<std::int32_t>(row.trial), static_cast<float>(snr)};
      }
    }
    if (best.width > 0) hits.push_back(best);
  }

  DetectConfig config_;
  const CpuKernel& kernel_;
  std::string name_;
  std::vector<Octave> octaves_;
  std::vector<SeriesStatistics> statistics_;
  std::int64_t row_, blocks_, segments_;
  std::vector<std::int64_t> place_;  // of the cells of each level
  std::int64_t cell_bytes_ = 0;
  Buffer<std::int32_t> prefix_;
  std::int64_t above_stride_ = 0;
  Buffer<std::uint16_t> above_;          // [slot][a level or the next]
  Buffer<std::uint8_t> cells_, maxima_;  // [slot][level]
  Buffer<std::uint8_t> block_hits_;      // [slot][octave][block]
  Buffer<std::uint8_t> below_;           // [slot][segment of starts][limit]
  Buffer<std::uint32_t> samples_;
  std::vector<std::vector<Hit>> hits_;
};

}  // namespace

std::unique_ptr<Detector> make_detector_cpu(Queue& queue, const DetectConfig& config,
                                            const CpuKernel& kernel) {
  return std::make_unique<CpuDetector>(queue, config, kernel);
}

}  // namespace ryle::search::detail
