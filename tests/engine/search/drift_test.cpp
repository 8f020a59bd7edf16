// SPDX-License-Identifier: BSD-3-Clause
// Levels that drift, step and differ between channels, taken out; pulses stay.
#include "ryle/engine/search/drift.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"

namespace ryle::search {
namespace {

constexpr std::int64_t kDriftBlock = 2048;

/// What a filter gives of [channel][n] samples, in blocks; behind the last one until all are out.
std::vector<float> levelled(const DriftConfig& config, const std::vector<float>& data,
                            std::int64_t n, int n_workers = 1) {
  Queue queue = Queue::cpu(n_workers);
  DriftFilter filter(config, kDriftBlock);
  const auto n_channels = config.n_channels;
  std::vector<float> out(data.size()), block(static_cast<std::size_t>(n_channels * kDriftBlock));
  std::int64_t given = 0;
  for (std::int64_t first = 0; given < n; first += kDriftBlock) {
    const std::int64_t here = std::clamp<std::int64_t>(n - first, 0, kDriftBlock);
    const std::int64_t come = filter.execute(queue, here > 0 ? data.data() + first : nullptr, n,
                                             here, block.data(), kDriftBlock);
    for (std::int64_t c = 0; c < n_channels; ++c)
      std::copy_n(block.begin() + c * kDriftBlock, std::min(come, n - given),
                  out.begin() + c * n + given);
    given += come;
    EXPECT_EQ(given, std::max<std::int64_t>(0, first + kDriftBlock - filter.lag()));
  }
  return out;
}

/// Noise of rms 1 about 10, and gain(t, channel) less 1 times `ratio`. @shape [channel][n]
template <class Gain>
std::vector<float> receiver(std::int64_t n_channels, std::int64_t n, const Gain& gain) {
  std::vector<float> data;
  for (std::int64_t c = 0; c < n_channels; ++c)
    for (std::int64_t t = 0; t < n; ++t)
      data.push_back(static_cast<float>(
          10 + gain(t, c) + gaussian(combine(3, static_cast<std::uint64_t>(c * n + t)))));
  return data;
}

/// Of [channel][n] less 10: means over `width` samples, in units of their noise.
std::vector<double> band_means(const std::vector<float>& x, std::int64_t n_channels, std::int64_t n,
                               std::int64_t width) {
  std::vector<double> sums(static_cast<std::size_t>(n / width), 0.0);
  for (std::int64_t c = 0; c < n_channels; ++c)
    for (std::int64_t t = 0; t < n / width * width; ++t)
      sums[static_cast<std::size_t>(t / width)] +=
          static_cast<double>(x[static_cast<std::size_t>(c * n + t)]) - 10;
  for (auto& s : sums) s /= std::sqrt(static_cast<double>(n_channels * width));
  return sums;
}

DriftConfig drift_config(std::int64_t n_channels, std::int64_t window) {
  DriftConfig config;
  config.n_channels = n_channels;
  config.window_samples = window;
  return config;
}

// +- 0.4 rms of each channel over eight windows is 17 of the noise of 32 samples of 64 channels;
// the windows' averages leave 6.4 % of 6.4 % of it.
TEST(Drift, SlowGainGoes) {
  const std::int64_t n_channels = 64, n = 16384, window = 1024;
  const auto data = receiver(n_channels, n, [](std::int64_t t, std::int64_t) {
    return 0.4 * std::sin(6.283185307179586 * static_cast<double>(t) / 8192);
  });
  double before = 0, after = 0;
  for (const double m : band_means(data, n_channels, n, 32)) before = std::max(before, std::abs(m));
  const auto out = levelled(drift_config(n_channels, window), data, n);
  const auto means = band_means(out, n_channels, n, 32);
  const double middle = std::accumulate(means.begin(), means.end(), 0.0) / std::ssize(means);
  for (std::size_t k = 16; k + 16 < means.size(); ++k)
    after = std::max(after, std::abs(means[k] - middle));
  EXPECT_GT(before, 16);
  EXPECT_LT(after, 4.2);  // 480 means of noise alone reach 3.3
}

// A step of all channels, by 0.2 to 0.6 of their rms: the median follows it, within one cell.
TEST(Drift, StepsGoWithTheirResponses) {
  const std::int64_t n_channels = 64, n = 12288, window = 1024, at = 6000;
  const auto data = receiver(n_channels, n, [](std::int64_t t, std::int64_t c) {
    return t < at ? 0.0 : 0.2 + 0.4 * static_cast<double>(c) / 63;
  });
  const auto out = levelled(drift_config(n_channels, window), data, n);
  const auto means = band_means(out, n_channels, n, 16);
  const double middle = std::accumulate(means.begin(), means.end(), 0.0) / std::ssize(means);
  for (std::size_t k = 0; k < means.size(); ++k)
    if (std::abs(static_cast<std::int64_t>(k) - at / 16) > 1) {
      EXPECT_LT(std::abs(means[k] - middle), 4.7) << k;  // of 12.8 without; noise alone reaches 3.4
    }
  // Sums of the upper half less those of the lower are level, too.
  for (const std::int64_t from : {at - 1000, at + 24}) {
    double difference = 0;
    for (std::int64_t c = 0; c < n_channels; ++c)
      for (std::int64_t t = from; t < from + 976; ++t)
        difference +=
            (c < 32 ? -1 : 1) * static_cast<double>(out[static_cast<std::size_t>(c * n + t)]);
    EXPECT_LT(std::abs(difference) / std::sqrt(64.0 * 976), 5) << from;  // of 25 without
  }
}

// Levels of single channels and of parts of the band go, too: each has its own.
TEST(Drift, ChannelsHaveTheirOwnLevels) {
  const std::int64_t n_channels = 32, n = 16384, window = 1024;
  const auto data = receiver(n_channels, n, [](std::int64_t t, std::int64_t c) {
    return (c < 16 ? 1 : -1) * 0.5 * std::sin(6.283185307179586 * static_cast<double>(t) / 8192);
  });
  const auto out = levelled(drift_config(n_channels, window), data, n);
  const auto lower = [&](const std::vector<float>& x, std::int64_t from) {
    double sum = 0;
    for (std::int64_t c = 0; c < 16; ++c)
      for (std::int64_t t = from - 32; t < from + 32; ++t)
        sum += static_cast<double>(x[static_cast<std::size_t>(c * n + t)]);
    return sum / std::sqrt(16.0 * 64);
  };
  for (const std::int64_t top : {2048, 10240}) {
    EXPECT_GT(lower(data, top) - lower(data, top + 4096), 25) << top;
    EXPECT_LT(std::abs(lower(out, top) - lower(out, top + 4096)), 6) << top;
  }
}

// A pulse in each channel that lasts a 24th of the window keeps 95 % of its sum, a bright one and a
// faint one; one of a hundredth keeps 98 %.
TEST(Drift, PulsesStay) {
  const std::int64_t n_channels = 32, n = 12288, window = 1536;
  for (const auto& [width, minimum] : {std::pair{64, 0.945}, {16, 0.98}})
    for (const double height : {0.3, 30.0}) {
      const std::int64_t w = width;
      const auto at = [](std::int64_t c) { return 5000 + 40 * c; };
      const auto with = receiver(n_channels, n, [&](std::int64_t t, std::int64_t c) {
        return t >= at(c) && t < at(c) + w ? height : 0.0;
      });
      const auto without = receiver(n_channels, n, [](std::int64_t, std::int64_t) { return 0.0; });
      const auto a = levelled(drift_config(n_channels, window), with, n);
      const auto b = levelled(drift_config(n_channels, window), without, n);
      double sum = 0;
      for (std::int64_t c = 0; c < n_channels; ++c)
        for (std::int64_t t = at(c); t < at(c) + w; ++t)
          sum += static_cast<double>(a[static_cast<std::size_t>(c * n + t)]) -
                 static_cast<double>(b[static_cast<std::size_t>(c * n + t)]);
      EXPECT_GT(sum / (height * static_cast<double>(n_channels * w)), minimum)
          << w << " " << height;
      EXPECT_LT(sum / (height * static_cast<double>(n_channels * w)), 1.01) << w << " " << height;
    }
}

// Lost samples, dead spectra and channels say nothing of the others and stay what they are.
TEST(Drift, WhatNeverCameStaysAway) {
  const std::int64_t n_channels = 16, n = 8192;
  auto data = receiver(n_channels, n, [](std::int64_t t, std::int64_t) {
    return 0.3 * std::sin(static_cast<double>(t) / 1500);
  });
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::fill_n(data.begin() + 7 * n, n, 5.0f);
  for (std::int64_t c = 0; c < n_channels; ++c) {
    std::fill_n(data.begin() + c * n + 3000, 100, 0.0f);  // a dead receiver
    std::fill_n(data.begin() + c * n + 5000, 700, nan);   // lost
  }
  data[4 * 8192 + 77] = std::numeric_limits<float>::infinity();
  const auto out = levelled(drift_config(n_channels, 1024), data, n);
  for (std::int64_t c = 0; c < n_channels; ++c)
    for (std::int64_t t = 0; t < n; ++t) {
      const bool gone = (t >= 3000 && t < 3100) || (t >= 5000 && t < 5700) || (c == 4 && t == 77);
      const float x = out[static_cast<std::size_t>(c * n + t)];
      ASSERT_EQ(std::isnan(x), gone) << c << " " << t;
      if (!gone && c == 7) {
        ASSERT_EQ(x, 5.0f) << t;
      }
      if (!gone && c != 7) {
        ASSERT_LT(std::abs(x - 10), 7) << c << " " << t;
      }
    }
}

// Power with a true zero: gains are divided out, and mean over rms stays.
TEST(Drift, GainsAreDividedOut) {
  const std::int64_t n_channels = 32, n = 8192;
  std::vector<float> data;
  for (std::int64_t c = 0; c < n_channels; ++c)
    for (std::int64_t t = 0; t < n; ++t) {
      const double gain = 1 + static_cast<double>(t) / static_cast<double>(n);
      data.push_back(static_cast<float>(
          gain * (10 + gaussian(combine(4, static_cast<std::uint64_t>(c * n + t))))));
    }
  auto config = drift_config(n_channels, 1024);
  config.multiply = true;
  const auto out = levelled(config, data, n);
  for (const std::int64_t first : {1024, 4096, 6144}) {
    double sum = 0, squares = 0, count = 0;
    for (std::int64_t c = 0; c < n_channels; ++c)
      for (std::int64_t t = first; t < first + 1024; ++t) {
        const double x = static_cast<double>(out[static_cast<std::size_t>(c * n + t)]);
        sum += x, squares += x * x, ++count;
      }
    const double mean = sum / count, rms = std::sqrt(squares / count - mean * mean);
    EXPECT_NEAR(mean / rms, 10, 0.4) << first;
  }
}

TEST(Drift, WorkersDoNotMatter) {
  const auto data = receiver(
      24, 6144, [](std::int64_t t, std::int64_t) { return 1e-4 * static_cast<double>(t); });
  EXPECT_EQ(levelled(drift_config(24, 512), data, 6144, 1),
            levelled(drift_config(24, 512), data, 6144, 2));
}

TEST(Drift, WindowsHaveLimits) {
  EXPECT_EQ(drift_window(0, 1e-3, 8), 500);
  EXPECT_EQ(drift_window(0, 1e-3, 100), 2400);
  EXPECT_EQ(drift_window(0, 10e-3, 8), 192);
  EXPECT_EQ(drift_window(0, 1e-6, 8), kMaxDriftSamples);
  EXPECT_EQ(drift_window(2.0, 1e-3, 100), 2000);
  EXPECT_THROW(drift_window(0.7, 1e-3, 100), ConfigError);  // 7 of the widest boxcar
  EXPECT_THROW(drift_window(70, 1e-3, 100), ConfigError);
  EXPECT_THROW(drift_window(-1, 1e-3, 8), ConfigError);
  EXPECT_THROW(drift_window(std::nan(""), 1e-3, 8), ConfigError);
  EXPECT_THROW(DriftFilter(drift_config(4, 32), 1024), ConfigError);
  EXPECT_THROW(DriftFilter(drift_config(4, 512), 1000), ConfigError);
}

}  // namespace
}  // namespace ryle::search
