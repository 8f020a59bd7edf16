// SPDX-License-Identifier: BSD-3-Clause
// Sub-bands: never further off the plan than asked, the same integers on every instruction set,
// and chosen only where they win.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/engine/search/search.hpp"
#include "ryle/engine/search/subband_plan.hpp"
#include "tests/engine/search/bands.hpp"

namespace ryle::search {
namespace {

DedisperseConfig subband_config(const Band& band, const std::vector<double>& dms, int max_code,
                                double smear_samples) {
  DedisperseConfig config;
  config.n_channels = band.n_channels();
  config.n_trials = static_cast<std::int64_t>(dms.size());
  config.delays = delay_table(band, dms);
  config.max_code = max_code;
  config.max_outputs = 4096;
  config.smear_samples = smear_samples;
  return config;
}

std::vector<double> steps(double first, double step, std::int64_t n) {
  std::vector<double> dms;
  for (std::int64_t k = 0; k < n; ++k) dms.push_back(first + static_cast<double>(k) * step);
  return dms;
}

// Every channel of every trial, the first and last trials (whose data end there) included.
TEST(Subbands, NoChannelIsFurtherOffThanAsked) {
  for (const std::int64_t n_channels : {1, 7, 100, 1024}) {
    const Band band = test::best2_band(n_channels);
    double rows_before = 1e300;
    for (const double smear : {1.0, 2.0, 5.5}) {
      const auto config = subband_config(band, steps(0, 0.1, 300), 63, smear);
      const auto maximum = *std::max_element(config.delays.begin(), config.delays.end());
      const auto plan = detail::subband_plan(config);
      double worst = 0, rows = 0;
      for (std::int64_t i = 0; i < config.n_trials; ++i) {
        for (std::int64_t c = 0; c < n_channels; ++c) {
          const auto track = plan.track(i, c);
          ASSERT_GE(track, 0);
          ASSERT_LE(track, maximum);
          worst = std::max(
              worst,
              std::abs(1.0 * track - config.delays[static_cast<std::size_t>(i * n_channels + c)]));
        }
      }
      EXPECT_LE(worst, std::floor(smear)) << n_channels;
      EXPECT_EQ(worst, plan.error.max_samples);
      for (const auto& s : plan.subbands) rows += static_cast<double>(s.n_groups() * s.n_channels);
      if (n_channels == 1024) {
        EXPECT_LT(detail::subband_work(plan), rows_before);  // more room, fewer additions
        EXPECT_LT(rows, 0.5 * 300 * 1024);
      }
      rows_before = detail::subband_work(plan);
    }
  }
}

struct SubbandCase {
  std::int64_t n_channels, n_trials;
  double first, step;
  int max_code;
  std::int64_t n_outputs;
  double smear;
};

TEST(Subbands, ImplementationsAgree) {
  const SubbandCase cases[] = {{1, 3, 0, 1, 63, 100, 1},         {3, 5, 10, 3, 255, 1025, 2},
                               {40, 33, 0, 0.5, 63, 1, 1},       {128, 70, 5, 0.2, 127, 2100, 1},
                               {300, 20, 300, 40, 255, 1300, 3}, {1100, 9, 0, 2, 63, 1030, 1},
                               {4096, 2, 20, 1, 63, 70, 1}};
  for (const auto& k : cases) {
    const Band band = test::band_of(400, 20, k.n_channels, 100e-6);
    auto config = subband_config(band, steps(k.first, k.step, k.n_trials), k.max_code, k.smear);
    const auto maximum = *std::max_element(config.delays.begin(), config.delays.end());
    const std::int64_t stride = k.n_outputs + maximum;
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(k.n_channels * stride + kReadAhead));
    for (std::size_t j = 0; j < codes.size(); ++j)
      codes[j] =
          static_cast<std::uint8_t>(combine(3, j) % (static_cast<std::uint64_t>(k.max_code) + 1));
    // All codes at their largest in the first case of wide sums: nothing may wrap.
    if (k.n_channels == 1100) std::fill(codes.begin(), codes.end(), std::uint8_t{63});
    const bool wide = sum_format(k.n_channels, k.max_code) == SumFormat::u32;
    const std::int64_t sum_stride = k.n_outputs + 5;
    std::vector<std::uint8_t> expected;
    for (const int workers : {1, 2}) {
      Queue queue = Queue::cpu(workers);
      for (const auto& name : available_subbands()) {
        config.implementation = name;
        const auto engine = make_dedisperser(queue, config);
        EXPECT_EQ(engine->implementation(), "search/subband/" + name.substr(8));
        EXPECT_EQ(engine->max_delay(), maximum);
        EXPECT_LE(engine->track_error().max_samples, k.smear);
        std::vector<std::uint8_t> sums(
            static_cast<std::size_t>(k.n_trials * sum_stride * (wide ? 4 : 2)), 0xA5);
        engine->execute(queue, codes.data(), stride, k.n_outputs, sums.data(), sum_stride);
        if (expected.empty()) expected = sums;
        EXPECT_TRUE(sums == expected) << name << " " << k.n_channels << " " << workers;
      }
    }
  }
  EXPECT_EQ(available_subbands().front(), "subband:reference");
  EXPECT_EQ(exact_implementation("subband"), "auto");
  EXPECT_EQ(exact_implementation("subband:avx2"), "cpu:avx2");
  EXPECT_EQ(exact_implementation("subband:reference"), "reference");
}

// A pulse of W samples on the planned delays: a channel that is off by e leaves e of its W samples
// outside the boxcar, so the boxcar holds at least 1 - mean |e| / W of it, hence of the S/N.
TEST(Subbands, LossIsWithinTheBound) {
  const Band band = test::best2_band(256);
  for (const double smear : {1.0, 3.0}) {
    auto config = subband_config(band, steps(3, 0.15, 120), 1, smear);
    const auto plan = detail::subband_plan(config);
    config.implementation = "subband";
    Queue queue = Queue::cpu(1);
    const auto engine = make_dedisperser(queue, config);
    EXPECT_GT(engine->track_error().rms_samples, 0.1);
    const std::int64_t n = 200, stride = n + engine->max_delay();
    for (const std::int64_t trial : {0, 17, 64, 119}) {
      for (const std::int64_t width : {1, 4, 16}) {
        std::vector<std::uint8_t> codes(static_cast<std::size_t>(256 * stride + kReadAhead));
        double off = 0;
        for (std::int64_t c = 0; c < 256; ++c) {
          const auto delay = config.delays[static_cast<std::size_t>(trial * 256 + c)];
          std::fill_n(codes.begin() + c * stride + 100 + delay, width, std::uint8_t{1});
          off +=
              std::min<double>(std::abs(plan.track(trial, c) - delay), static_cast<double>(width));
        }
        std::vector<std::uint16_t> sums(static_cast<std::size_t>(120 * n));
        engine->execute(queue, codes.data(), stride, n, sums.data(), n);
        double held = 0;
        for (std::int64_t t = 100; t < 100 + width; ++t)
          held += sums[static_cast<std::size_t>(trial * n + t)];
        const double all = 256.0 * static_cast<double>(width);
        EXPECT_DOUBLE_EQ(held, all - off) << smear << " " << trial << " " << width;
        EXPECT_GE(held / all, 1 - smear / static_cast<double>(width));
      }
    }
  }
}

TEST(Subbands, AreTakenOnlyWhereTheyWin) {
  Queue queue = Queue::cpu(1);
  const auto chosen = [&](const Band& band, const std::vector<double>& dms, double smear) {
    const auto engine = make_dedisperser(queue, subband_config(band, dms, 63, smear));
    return std::string(engine->implementation()).substr(0, 14);
  };
  const Band band = test::best2_band(256);
  EXPECT_EQ(chosen(band, steps(0, 0.02, 400), 2), "search/subband");
  EXPECT_EQ(chosen(band, steps(0, 0.02, 400), 0).substr(0, 10), "search/cpu");
  // Steps so wide that hardly two trials share a row.
  EXPECT_EQ(chosen(band, steps(50, 40, 8), 1).substr(0, 10), "search/cpu");
  auto config = subband_config(band, steps(0, 1, 4), 63, -1);
  EXPECT_THROW(make_dedisperser(queue, config), ConfigError);
  config.smear_samples = 1;
  config.implementation = "subband:pdp11";
  EXPECT_THROW(make_dedisperser(queue, config), UnsupportedError);
}

}  // namespace
}  // namespace ryle::search
