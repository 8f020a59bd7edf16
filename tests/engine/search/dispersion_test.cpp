// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/dispersion.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "ryle/core/error.hpp"
#include "tests/engine/search/bands.hpp"

namespace ryle::search {
namespace {

using test::best2_band;

TEST(Dispersion, ConstantsHaveNames) {
  EXPECT_DOUBLE_EQ(dispersion_constant("physical"), 4148.8064);
  EXPECT_NEAR(dispersion_constant("tempo"), 4149.378, 5e-4);
  EXPECT_DOUBLE_EQ(dispersion_constant("best2"), 4148.741601);
  EXPECT_DOUBLE_EQ(dispersion_constant("dedisp"), 4150);
  EXPECT_DOUBLE_EQ(dispersion_constant("4148.8"), 4148.8);
  EXPECT_THROW(dispersion_constant("heimdall"), ConfigError);
  EXPECT_THROW(dispersion_constant("0"), ConfigError);
}

// T-DD-15: Magro 2014's plan; delays equal the formula with the stated constant, rounded to
// nearest.
TEST(Dispersion, DelaysOfThePaper) {
  const Band band = best2_band();
  DmPlanConfig config;
  config.kind = "linear";
  config.step = 0.1;
  config.count = 864;
  const auto dms = dm_trials(band, config);
  ASSERT_EQ(dms.size(), 864u);
  EXPECT_DOUBLE_EQ(dms.back(), 86.3);
  const auto delays = delay_table(band, dms);
  EXPECT_EQ(*std::max_element(delays.begin(), delays.end()),
            4119);  // 4148.8064 x 86.3 (398.01^-2 - 417.99^-2) / 51.2 us = 4119.5, below the half
  for (const std::size_t trial :
       {std::size_t{0}, std::size_t{1}, std::size_t{431}, std::size_t{863}}) {
    for (std::int64_t c = 0; c < 1024; c += 41) {
      const double lo = band.center_hz[static_cast<std::size_t>(c)] * 1e-6,
                   hi = band.center_hz.back() * 1e-6;
      const double exact = 4148.8064 * dms[trial] * (1 / (lo * lo) - 1 / (hi * hi)) / 51.2e-6;
      EXPECT_NEAR(delays[trial * 1024 + static_cast<std::size_t>(c)], exact, 0.5 + 1e-9);
    }
    EXPECT_EQ(delays[trial * 1024 + 1023], 0);
  }
}

// search.md 4: 643 trials at 1.25, 1054 at 1.10, 1511 at 1.05, 3443 at 1.01 (from plan.py). The
// first trial is counted there, too.
TEST(Dispersion, TolerancePlansOfTheDesign) {
  const Band band = best2_band();
  DmPlanConfig config;
  config.dm_max = 86.4;
  const std::pair<double, std::size_t> expected[] = {
      {1.25, 643}, {1.10, 1054}, {1.05, 1511}, {1.01, 3443}};
  for (const auto& [tolerance, count] : expected) {
    config.tolerance = tolerance;
    EXPECT_NEAR(static_cast<double>(dm_trials(band, config).size()), static_cast<double>(count),
                2.0)
        << tolerance;
  }
}

TEST(Dispersion, NativeStepsSweepOneSampleEach) {
  const Band band = best2_band();
  DmPlanConfig config;
  config.kind = "native";
  config.dm_max = 20;
  const auto dms = dm_trials(band, config);
  const auto delays = delay_table(band, dms);
  EXPECT_NEAR(dms[1], 0.0209, 0.0001);
  for (std::size_t k = 0; k < dms.size(); ++k)
    EXPECT_EQ(delays[k * 1024], static_cast<std::int32_t>(k));
}

TEST(Dispersion, RangesAndFiles) {
  const Band band = best2_band();
  DmPlanConfig config;
  config.kind = "ranges";
  config.ranges = "0 1 0.5; 1 3 1 # wide\n10 11 1";
  EXPECT_EQ(dm_trials(band, config), (std::vector<double>{0, 0.5, 1, 2, 3, 10, 11}));
  config.kind = "file";
  config.file = "# mine\n5\n1.5 2\n";
  EXPECT_EQ(dm_trials(band, config), (std::vector<double>{1.5, 2, 5}));
}

TEST(Dispersion, RejectsImpossiblePlans) {
  const Band band = best2_band();
  const auto rejected = [&](auto change) {
    DmPlanConfig config;
    config.dm_max = 10;
    change(config);
    EXPECT_THROW(dm_trials(band, config), ConfigError);
  };
  rejected([](auto& c) { c.kind = "fast"; });
  rejected([](auto& c) { c.dm_max = -1; });
  rejected([](auto& c) { c.tolerance = 1; });
  rejected([](auto& c) { c.kind = "linear"; });
  rejected([](auto& c) { c.kind = "ranges", c.ranges = "1 2"; });
  rejected([](auto& c) { c.kind = "file", c.file = "one"; });
  rejected([](auto& c) { c.kind = "linear", c.step = 1e-9; });
}

// search.md 1: half a step of 0.1: 0.74 at 0.1 ms, 0.92 at 0.2, 0.963 at 0.3, 0.997 at 1.
TEST(Dispersion, LossOfHalfAStep) {
  const Band band = best2_band();
  EXPECT_NEAR(dm_error_response(band, 0.05, 0.1e-3), 0.74, 0.01);
  EXPECT_NEAR(dm_error_response(band, 0.05, 0.2e-3), 0.92, 0.01);
  EXPECT_NEAR(dm_error_response(band, 0.05, 0.3e-3), 0.963, 0.005);
  EXPECT_NEAR(worst_response(band, {0, 0.05, 0.15}, 1e-3), 0.997, 0.002);
}

// T-DD-23: 4150 moves a pulse of DM 1000 by 0.29 pc cm^-3.
TEST(Dispersion, TheConstantMovesTheDm) {
  Band band = best2_band();
  const double delay_in_samples = band.delay_samples(0, 1000);
  band.k_dm = 4150;
  EXPECT_NEAR(1000 - delay_in_samples / band.sweep_samples_per_dm(), 0.29, 0.005);
}

TEST(Dispersion, SmearingOfTheBlock) {
  const Band band = best2_band();  // 8.3 us DM d_nu_MHz nu_GHz^-3: 119 us at DM 50, band center
  EXPECT_NEAR(band.smearing_samples(512, 50) * 51.2, 119, 1);
}

}  // namespace
}  // namespace ryle::search
