// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/normalize.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"

namespace ryle::search {
namespace {

struct Codes {
  std::vector<std::uint8_t> codes, cells;
  NormalizeReport report;
  std::vector<std::uint8_t> flags;
};

/// Channels with their own mean and rms. @shape [channel][n]
std::vector<float> band(std::int64_t n_channels, std::int64_t n) {
  std::vector<float> data(static_cast<std::size_t>(n_channels * n));
  for (std::int64_t c = 0; c < n_channels; ++c) {
    const double mean = 200 + 100 * std::sin(0.05 * static_cast<double>(c)),
                 rms = 10 + 0.1 * static_cast<double>(c);
    for (std::int64_t t = 0; t < n; ++t)
      data[static_cast<std::size_t>(c * n + t)] = static_cast<float>(
          mean + rms * gaussian(combine(7, static_cast<std::uint64_t>(c * n + t))));
  }
  return data;
}

Codes run(const NormalizeConfig& config, const std::vector<float>& data, std::int64_t n) {
  Queue queue = Queue::cpu(2);
  Normalizer normalizer(config);
  Codes out;
  out.codes.assign(data.size(), 0xEE);
  out.cells.assign(static_cast<std::size_t>(config.n_channels * ((n + 63) / 64)), 0xEE);
  normalizer.execute(queue, data.data(), n, n, out.codes.data(), n, out.cells.data(), (n + 63) / 64,
                     out.report);
  out.flags = normalizer.channel_flags();
  return out;
}

NormalizeConfig config_of(std::int64_t n_channels) {
  NormalizeConfig config;
  config.n_channels = n_channels;
  return config;
}

TEST(Normalize, CodesHaveOneMeanAndRms) {
  const std::int64_t n = 4096;
  const auto out = run(config_of(64), band(64, n), n);
  for (std::int64_t c = 0; c < 64; ++c) {
    ASSERT_EQ(out.flags[static_cast<std::size_t>(c)], 0) << c;
    double sum = 0, squares = 0;
    for (std::int64_t t = 0; t < n; ++t) {
      const double q = out.codes[static_cast<std::size_t>(c * n + t)];
      sum += q;
      squares += q * q;
    }
    const double mean = sum / n;
    EXPECT_NEAR(mean, kCodeMean, 5 * 8 / 64.0);  // 5 standard errors of cell medians
    EXPECT_NEAR(std::sqrt(squares / n - mean * mean), kCodeSigma, 0.5);
  }
  EXPECT_EQ(out.report.n_samples, n);
  EXPECT_EQ(out.report.masked_absent + out.report.masked_user, 0);
  for (const auto cell : out.cells) EXPECT_TRUE(cell == kFullCell || cell == 0);
}

// Cells of means 0 and 1 by turns: the running median of eight of them is 1/2, not the upper
// middle. Numbers of cells alternate towards the end of a gulp, and so did the level of the codes.
TEST(Normalize, RunningMediansOfEvenNumbersAreBalanced) {
  auto config = config_of(1);
  config.flag_channels = false;
  const std::int64_t cell = config.statistics_samples;
  std::vector<float> data;
  for (std::int64_t t = 0; t < 8 * cell; ++t)  // rms 1 in every cell
    data.push_back(static_cast<float>(t / cell % 2 + (t % 2 == 0 ? 1 : -1)));
  const auto out = run(config, data, 8 * cell);
  for (std::size_t t = 0; t < data.size(); ++t)
    ASSERT_EQ(static_cast<float>(out.codes[t]), kCodeMean + kCodeSigma * (data[t] - 0.5f)) << t;
}

// MDSM c: a masked channel is out of the data, however loud it is.
TEST(Normalize, AMaskedChannelSaysNothing) {
  const std::int64_t n = 2048;
  auto data = band(64, n);
  for (std::int64_t t = 0; t < n; ++t)
    data[static_cast<std::size_t>(20 * n + t)] = static_cast<float>(1e6 * (t % 3));
  auto config = config_of(64);
  config.masked.assign(64, 0);
  config.masked[20] = 1;
  const auto out = run(config, data, n);
  for (std::int64_t t = 0; t < n; ++t)
    ASSERT_EQ(out.codes[static_cast<std::size_t>(20 * n + t)], kCodeMean);
  for (std::int64_t k = 0; k < n / 64; ++k)
    ASSERT_EQ(out.cells[static_cast<std::size_t>(20 * (n / 64) + k)], 0);
  EXPECT_EQ(out.report.masked_user, n);
}

// T-DD-10, MDSM a: narrow-band interference is found and stays out.
TEST(Normalize, NoisyAndBrightChannelsAreFlagged) {
  const std::int64_t n = 4096;
  auto data = band(128, n);
  for (std::int64_t t = 0; t < n; ++t) {
    data[static_cast<std::size_t>(30 * n + t)] +=
        static_cast<float>(40 * gaussian(combine(8, static_cast<std::uint64_t>(t))));
    data[static_cast<std::size_t>(77 * n + t)] += 300;
  }
  const auto out = run(config_of(128), data, n);
  EXPECT_EQ(out.flags[30], 1);
  EXPECT_EQ(out.flags[77], 1);
  std::int64_t flagged = 0;
  for (const auto f : out.flags) flagged += f;
  EXPECT_LE(flagged, 4);
  for (std::int64_t t = 0; t < n; ++t)
    ASSERT_EQ(out.codes[static_cast<std::size_t>(30 * n + t)], kCodeMean);
}

TEST(Normalize, LostSpectraAreAbsentNotPulses) {
  const std::int64_t n = 4096;
  auto data = band(40, n);
  for (std::int64_t c = 0; c < 40; ++c) {
    for (std::int64_t t = 1000; t < 1256; ++t) data[static_cast<std::size_t>(c * n + t)] = 0;
  }
  data[5 * 4096 + 7] = std::numeric_limits<float>::quiet_NaN();
  const auto out = run(config_of(40), data, n);
  EXPECT_GE(out.report.masked_absent, 38 * 256);
  for (std::int64_t t = 1000; t < 1256; ++t)
    ASSERT_EQ(out.codes[static_cast<std::size_t>(3 * n + t)], kCodeMean);
  EXPECT_EQ(out.codes[5 * 4096 + 7], kCodeMean);
  EXPECT_EQ(out.cells[3 * 64 + 17], 0);                        // 1088 .. 1151
  EXPECT_EQ(out.cells[3 * 64 + 15], kFullCell * 40 / 64 + 0);  // 960 .. 999 of 960 .. 1023 left
}

TEST(Normalize, LegendreFitIgnoresOutliers) {
  std::vector<double> values(200);
  for (std::size_t c = 0; c < 200; ++c)
    values[c] = 5 + 0.02 * static_cast<double>(c) + std::sin(0.02 * static_cast<double>(c));
  values[50] = 1e4;
  const auto fit = legendre_fit(values, std::vector<std::uint8_t>(200, 1), 11);
  for (std::size_t c = 0; c < 200; ++c)
    if (c != 50) {
      EXPECT_NEAR(fit[c], values[c], 0.01) << c;
    }
}

TEST(Normalize, RejectsWhatCannotBe) {
  EXPECT_THROW(Normalizer(config_of(0)), ConfigError);
  auto config = config_of(8);
  config.masked.assign(3, 0);
  EXPECT_THROW(Normalizer{config}, ConfigError);
}

}  // namespace
}  // namespace ryle::search
