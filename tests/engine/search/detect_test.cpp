// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/core/units.hpp"

namespace ryle::search {
namespace {

/// Gaussian sums about 24,000 with an rms of 250, as of 1024 channels of codes.
template <class T>
std::vector<T> noise(std::int64_t n, std::uint64_t seed, double rms = 250, double mean = 24000) {
  std::vector<T> x(static_cast<std::size_t>(n));
  for (std::size_t k = 0; k < x.size(); ++k)
    x[k] = static_cast<T>(std::lround(mean + rms * gaussian(combine(seed, k))));
  return x;
}

DetectInput all_of(const void* sums, std::int64_t stride, std::int64_t n_columns,
                   std::int64_t max_width) {
  DetectInput in;
  in.sums = sums;
  in.stride = stride;
  in.n_columns = n_columns;
  in.first_tick = 1000;
  in.end_start = (n_columns - max_width) / 64 * 64;
  in.stat_end = n_columns;
  return in;
}

std::vector<Hit> run(Queue& queue, DetectConfig config, const std::string& name,
                     const DetectInput& in) {
  config.implementation = name;
  const auto detector = make_detector(queue, config);
  EXPECT_NE(detector->implementation().find(name.substr(name.find(':') + 1)),
            std::string_view::npos);
  std::vector<Hit> hits;
  detector->execute(queue, in, hits);
  std::vector<Hit> again;
  detector->execute(queue, in, again);
  EXPECT_EQ(hits, again);
  return hits;
}

TEST(Detect, WidthsOfTheDesign) {
  EXPECT_EQ(boxcar_widths(1), (std::vector<std::int32_t>{1}));
  const auto widths = boxcar_widths(2048);
  EXPECT_EQ(widths.back(), 2048);
  for (std::size_t k = 8; k < widths.size(); ++k) EXPECT_LE(widths[k], 1.26 * widths[k - 1]);
}

// Every implementation gives the hits of the definition, with and without masks, 16 and 32 bit.
template <class T>
void expect_all_equal(SumFormat format, double scale) {
  Queue queue = Queue::cpu(2);
  DetectConfig config;
  config.n_trials = 19;
  config.max_width = 300;
  config.threshold = 3;  // many hits
  config.format = format;
  const std::int64_t n_columns = 3000, stride = 3010;
  config.max_columns = n_columns;
  auto sums = noise<T>(config.n_trials * stride, 1, 250 * scale, 24000 * scale);
  for (std::int64_t t = 0; t < 40; ++t)
    sums[static_cast<std::size_t>(4 * stride + 1500 + t)] += static_cast<T>(400 * scale);
  for (std::int64_t t = 0; t < n_columns; ++t)
    sums[static_cast<std::size_t>(7 * stride + t)] = 5;  // dead
  std::vector<float> weights(static_cast<std::size_t>(config.n_trials * 47), 1.0f);
  for (std::size_t k = 0; k < weights.size(); ++k)
    if (combine(3, k) % 4 == 0) weights[k] = static_cast<float>(uniform(combine(4, k)));
  std::vector<float> same(weights.size(), 50.0f / 63);
  std::vector<Hit> level;
  for (const int kind : {0, 1, 2, 3}) {  // no weights, different ones, one and the same twice
    DetectInput in = all_of(sums.data(), stride, n_columns, config.max_width);
    if (kind == 2) in.level = same[0];
    if (kind == 3) {
      in.weights = same.data();
      in.weight_stride = 47;
    }
    if (kind == 1) {
      in.weights = weights.data();
      in.weight_stride = 47;
      in.first_start = 128;
      in.stat_first = 70;
    }
    const auto expected = run(queue, config, "reference", in);
    EXPECT_GT(expected.size(), 20u);
    for (const auto& name : available_implementations())
      EXPECT_EQ(kind == 3 ? expected : run(queue, config, name, in), expected) << name;
    if (kind == 2) level = expected;
    if (kind == 3) {
      EXPECT_EQ(level, expected);
    }
  }
}
TEST(Detect, ImplementationsAgree16) { expect_all_equal<std::uint16_t>(SumFormat::u16, 1); }
TEST(Detect, ImplementationsAgree32) { expect_all_equal<std::uint32_t>(SumFormat::u32, 30); }

// The screen of the fast implementations works in bytes on cells of samples and bounds what lies
// beyond them by the largest sample near: samples that end at the top of a byte, or lie just
// before or behind the piece the bound was taken from, must not hide a boxcar of any width.
TEST(Detect, HitsBesideBrightSamples) {
  Queue queue = Queue::cpu(1);
  DetectConfig config;
  config.n_trials = 8;
  config.max_width = 2048;
  const std::int64_t n_columns = 2048 + 6 * 1024;
  config.max_columns = n_columns;
  auto sums = noise<std::uint16_t>(config.n_trials * n_columns, 21, 40, 3000);
  for (std::int64_t trial = 0; trial < config.n_trials; ++trial) {
    for (std::int64_t k = 0; k < 14; ++k) {
      const std::uint64_t key = combine(22, static_cast<std::uint64_t>(100 * trial + k));
      // About the ends of pieces of 512 starts of all levels; 3 to 1000 sigma, 1 to 40 samples.
      const auto level = static_cast<std::int64_t>(key % 4);
      const std::int64_t at = std::int64_t{512} * (1 + (key >> 8) % 11) +
                              static_cast<std::int64_t>((key >> 16) % 16) * (1 << level) -
                              8 * (1 << level);
      const std::int64_t width = 1 + static_cast<std::int64_t>((key >> 24) % (k % 2 == 0 ? 1 : 40));
      const double height = 40 * 3 *
                            std::pow(300.0, static_cast<double>((key >> 32) % 1000) / 1000) /
                            std::sqrt(static_cast<double>(width));
      for (std::int64_t t = at; t < at + width; ++t) {
        auto& x = sums[static_cast<std::size_t>(trial * n_columns + t)];
        x = static_cast<std::uint16_t>(std::min(65535.0, x + height));
      }
    }
  }
  DetectInput in = all_of(sums.data(), n_columns, n_columns, config.max_width);
  for (const double threshold : {4.5, 9.0}) {
    config.threshold = threshold;
    const auto expected = run(queue, config, "reference", in);
    EXPECT_GT(expected.size(), 100u);
    for (const auto& name : available_implementations())
      EXPECT_EQ(run(queue, config, name, in), expected) << name << " at " << threshold;
  }
}

TEST(Detect, SigmaOfGaussiansAndOfPulsedData) {
  Queue queue = Queue::cpu(1);
  DetectConfig config;
  config.n_trials = 1;
  config.max_columns = 40000;
  auto sums = noise<std::uint16_t>(40000, 5);
  for (std::size_t t = 20000; t < 20400; ++t)
    sums[t] = static_cast<std::uint16_t>(sums[t] + 5000);  // 1 % of a strong pulse
  const auto detector = make_detector(queue, config);
  std::vector<Hit> hits;
  detector->execute(queue, all_of(sums.data(), 40000, 40000, 256), hits);
  const auto s = detector->statistics()[0];
  EXPECT_NEAR(s.mu, 24000, 5 * 250 / std::sqrt(40000.0));
  EXPECT_NEAR(s.sigma, 250, 250 * 0.015);
}

// T-DD-02/03: Gaussian pulses in every phase, without noise: 0.93 of the matched filter on average,
// for widths of 2 samples and more (search.md 1); sigma of 3500 samples is good to 1.2 %.
TEST(Detect, RecoversGaussianPulses) {
  Queue queue = Queue::cpu(1);
  DetectConfig config;
  config.n_trials = 1;
  config.max_columns = 8192;
  config.max_width = 512;
  config.format = SumFormat::u32;
  for (const double fwhm : {2.0, 3.3, 4.2, 8.5, 24.0, 100.0, 190.0}) {
    double total = 0, worst = 1;
    constexpr int kPhases = 16;
    for (int phase = 0; phase < kPhases; ++phase) {
      // Noise of 1/300 of the pulse: half a percent per phase.
      auto sums = noise<std::uint32_t>(8192, 100 + static_cast<std::uint64_t>(phase), 1000, 1e6);
      const double s = fwhm / 2.3548200450309493, at = 4000 + static_cast<double>(phase) / kPhases;
      double squares = 0;
      std::vector<double> profile(sums.size());
      for (std::size_t t = 0; t < sums.size(); ++t) {
        const double x = (static_cast<double>(t) - at) / s / std::sqrt(2.0),
                     d = 1 / s / std::sqrt(2.0);
        profile[t] = 0.5 * (std::erf(x + d) - std::erf(x));
        squares += profile[t] * profile[t];
      }
      const double ideal = 300, amplitude = ideal * 1000 / std::sqrt(squares);
      for (std::size_t t = 0; t < sums.size(); ++t)
        sums[t] += static_cast<std::uint32_t>(std::lround(amplitude * profile[t]));
      const auto detector = make_detector(queue, config);
      std::vector<Hit> hits;
      auto in = all_of(sums.data(), 8192, 8192, 512);
      in.stat_end = 3500;  // where there is no pulse
      detector->execute(queue, in, hits);
      ASSERT_FALSE(hits.empty());
      double best = 0;
      for (const auto& hit : hits) best = std::max(best, static_cast<double>(hit.snr));
      total += best / ideal;
      worst = std::min(worst, best / ideal);
    }
    EXPECT_GE(total / kPhases, 0.925) << fwhm;
    EXPECT_GE(worst, 0.90) << fwhm;
    EXPECT_LE(total / kPhases, 1.01) << fwhm;
  }
}

// T-DD-07 in small: above 4 sigma 2e6 independent samples of width 1 give 63 +- 5 sqrt(63).
TEST(Detect, FalseAlarmsOfGaussianNoise) {
  Queue queue = Queue::cpu(2);
  DetectConfig config;
  config.n_trials = 50;
  config.max_width = 1;
  config.max_columns = 40064;
  config.threshold = 4;
  const auto sums = noise<std::uint16_t>(50 * 40064, 11);
  const auto detector = make_detector(queue, config);
  std::vector<Hit> hits;
  detector->execute(queue, all_of(sums.data(), 40064, 40064, 64), hits);
  const double expected = 50.0 * 40000 * 0.5 * std::erfc(4 / std::sqrt(2.0));
  EXPECT_NEAR(static_cast<double>(hits.size()), expected, 5 * std::sqrt(expected));
}

TEST(Detect, RejectsWhatCannotBe) {
  Queue queue = Queue::cpu(1);
  DetectConfig config;
  config.n_trials = 1;
  config.max_columns = 640;
  config.max_width = 100000;
  EXPECT_THROW(make_detector(queue, config), ConfigError);
  config.max_width = 10;
  config.threshold = 0;
  EXPECT_THROW(make_detector(queue, config), ConfigError);
  config.threshold = 6;
  config.implementation = "gpu";
  EXPECT_THROW(make_detector(queue, config), UnsupportedError);
}

}  // namespace
}  // namespace ryle::search
