// SPDX-License-Identifier: BSD-3-Clause
// Detection as it is defined, one number after the other.
#include <algorithm>
#include <cmath>

#include "ryle/engine/search/detect_common.hpp"

namespace ryle::search::detail {
namespace {

class ReferenceDetector final : public Detector {
 public:
  explicit ReferenceDetector(const DetectConfig& config)
      : config_(config),
        octaves_(octaves(boxcar_widths(config.max_width))),
        statistics_(config.n_trials) {}

  void execute(Queue&, const DetectInput& in, std::vector<Hit>& hits) override {
    for (std::int64_t trial = 0; trial < config_.n_trials; ++trial) {
      SeriesStatistics& s = statistics_[trial];
      s = measure(in, trial);
      if (!(s.sigma > 0)) continue;
      for (const Octave& octave : octaves_) search(in, trial, s, octave, hits);
    }
  }
  const std::vector<SeriesStatistics>& statistics() const override { return statistics_; }
  std::string_view implementation() const override { return "search/reference"; }

 private:
  std::int64_t value(const DetectInput& in, std::int64_t trial, std::int64_t column) const {
    const std::int64_t at = trial * in.stride + column;
    return config_.format == SumFormat::u16
               ? static_cast<const std::uint16_t*>(in.sums)[at]
               : static_cast<std::int64_t>(static_cast<const std::uint32_t*>(in.sums)[at]);
  }
  static double weight(const DetectInput& in, std::int64_t trial, std::int64_t column) {
    return in.weights == nullptr
               ? static_cast<double>(in.level)
               : static_cast<double>(in.weights[trial * in.weight_stride + column / 64]);
  }

  // Columns of full enough weight only; sigma is that of weight 1.
  SeriesStatistics measure(const DetectInput& in, std::int64_t trial) const {
    double maximum = 0;
    for (std::int64_t t = in.stat_first; t < in.stat_end; ++t)
      maximum = std::max(maximum, weight(in, trial, t));
    std::vector<std::int64_t> columns;
    for (std::int64_t t = in.stat_first; t < in.stat_end; ++t)
      if (maximum > 0 && weight(in, trial, t) >= 0.75 * maximum) columns.push_back(t);
    const auto n = static_cast<std::int64_t>(columns.size());
    const std::int64_t step = std::max<std::int64_t>(1, (n + 511) / 512);
    std::vector<std::int64_t> sample;
    for (std::int64_t k = 0; k < n; k += step) sample.push_back(value(in, trial, columns[k]));
    Moments m;
    robust_start(sample, m);
    double weights = 0;
    for (const std::int64_t t : columns) {
      const std::int64_t x = value(in, trial, t) - m.center;
      weights += weight(in, trial, t);
      if (std::abs(x) > m.clip) continue;
      ++m.n;
      m.sum += x;
      m.squares += x * x;
    }
    SeriesStatistics s = unclipped(m);
    if (n > 0) s.sigma /= std::sqrt(weights / static_cast<double>(n));
    return s;
  }

  void search(const DetectInput& in, std::int64_t trial, const SeriesStatistics& s,
              const Octave& octave, std::vector<Hit>& hits) const {
    const std::int64_t step = std::int64_t{1} << octave.halvings;
    for (std::int64_t block = in.first_start; block < in.end_start; block += 64 * step) {
      Hit best;
      for (std::int64_t t = block; t < std::min(block + 64 * step, in.end_start); t += step) {
        for (const std::int32_t narrow : octave.widths) {
          const std::int64_t width = narrow * step;
          const double w = weight(in, trial, t + width / 2);
          if (w < static_cast<double>(kMinWeight)) continue;
          std::int64_t sum = 0;
          for (std::int64_t k = t; k < t + width; ++k) sum += value(in, trial, k);
          // @eq S/N = (sum_W x - W mu) / (sigma sqrt(W w))
          const double snr = (static_cast<double>(sum) - static_cast<double>(width) * s.mu) /
                             (s.sigma * std::sqrt(static_cast<double>(width) * w));
          if (snr >= config_.threshold && static_cast<float>(snr) > best.snr)
            best = {in.first_tick + t, static_cast<std::int32_t>(width),
                    static_cast<std::int32_t>(trial), static_cast<float>(snr)};
        }
      }
      if (best.width > 0) hits.push_back(best);
    }
  }

  DetectConfig config_;
  std::vector<Octave> octaves_;
  std::vector<SeriesStatistics> statistics_;
};

}  // namespace

std::unique_ptr<Detector> make_detector_reference(const DetectConfig& config) {
  return std::make_unique<ReferenceDetector>(config);
}

}  // namespace ryle::search::detail
