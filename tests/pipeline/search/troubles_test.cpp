// SPDX-License-Identifier: BSD-3-Clause
// A small version of the grid of troubles (tests/search_recovery): gain that drifts, steps and
// flickers does not blind the search.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/search_recovery/scenarios.hpp"

namespace ryle::pipeline {
namespace {

// Pulses of S/N 20, 2 and 32 samples wide. Ten scatter by 1.6 % of their mean S/N.
void expect_found(test::Trouble trouble, double interval_s, double fwhm_s) {
  const auto setup = test::scenario_setup(interval_s, fwhm_s, 10);
  const auto r = test::run_scenario(trouble, setup);
  EXPECT_EQ(r.n_found, r.n_pulses) << interval_s << " " << fwhm_s;
  EXPECT_GE(r.boxcar, (0.95 - 0.03) * r.expected) << interval_s << " " << fwhm_s;
  EXPECT_EQ(r.n_false, 0) << interval_s << " " << fwhm_s;
}

// +- 1 % in 10 s at 1.27 ms: 4 of 12 were found at 1.024 ms, none at 5 ms.
TEST(Troubles, GainThatDriftsDoesNotBlind) {
  expect_found(test::Trouble::drift, 1.27e-3, 40e-3);
  expect_found(test::Trouble::drift, 5e-3, 10e-3);
}

// 0.5 % every 7 s: pulses were lost for seconds after.
TEST(Troubles, GainThatStepsDoesNotBlind) {
  expect_found(test::Trouble::step, 1.27e-3, 2.54e-3);
  expect_found(test::Trouble::step, 5e-3, 40e-3);
}

TEST(Troubles, GainThatFlickersDoesNotBlind) {
  expect_found(test::Trouble::flicker, 1.27e-3, 2.54e-3);
}

// Bursts of 27 of the band's noise in a fifth of its channels: none of 36 is a candidate. Six were
// found at DMs of 4 to 90, where few channels have no DM of their own.
TEST(Troubles, PulsesInPartOfTheBandAreSuspect) {
  const auto setup = test::scenario_setup(256e-6, 2e-3, 10);
  const auto r = test::run_scenario(test::Trouble::part_of_band, setup);
  EXPECT_EQ(r.n_found, r.n_pulses);
  EXPECT_EQ(r.n_false, 0);
}

// Radar takes what it is on, and no more. Bursts of single samples of 5 ms may be of DM 0.5 by
// their errors, for that sweeps a tenth of a sample: they stayed, and took a tenth of the S/N.
TEST(Troubles, RadarIsNoCandidate) {
  for (const double interval_s : {1.27e-3, 5e-3}) {
    const auto setup = test::scenario_setup(interval_s, 2 * interval_s, 10);
    const auto r = test::run_scenario(test::Trouble::radar, setup);
    EXPECT_EQ(r.n_found, r.n_pulses) << interval_s;
    EXPECT_EQ(r.n_false, 0) << interval_s;
    EXPECT_GE(r.boxcar, 0.92 * r.expected * std::sqrt(1 - r.masked_spectra)) << interval_s;
    // Of the samples 0.8 % are radar. All that a boxcar of 32 samples held of it was masked: a
    // quarter.
    EXPECT_LT(r.masked_spectra, 0.09) << interval_s;
  }
}

// Where a burst lies in the sweep of a pulse, the burst goes and the pulse stays: one of six pulses
// went with it.
TEST(Troubles, RadarTakesNoPulseWithIt) {
  const auto setup = test::scenario_setup(10e-3, 20e-3, 48);
  const auto r = test::run_scenario(test::Trouble::radar, setup);
  RecordProperty("found", static_cast<int>(r.n_found));
  EXPECT_GE(r.n_found, 46);
  EXPECT_EQ(r.n_false, 0);
  EXPECT_LT(r.masked_spectra, 0.09);
}

// What all channels do at once is taken out with a plan that begins at DM 0, and
// pulses that sweep over ten of their widths stay.
TEST(Troubles, TheZeroDmFilterTakesAnyPlan) {
  auto setup = test::scenario_setup(1.27e-3, 2.54e-3, 10);
  EXPECT_EQ(setup.dms.front(), 0);
  setup.zero_dm = search::ZeroDm::weighted;
  const auto r = test::run_scenario(test::Trouble::flicker, setup);
  EXPECT_EQ(r.n_found, r.n_pulses);
  EXPECT_EQ(r.n_false, 0);
  EXPECT_GE(r.boxcar, 0.92 * r.expected);
}

// Nothing is lost by it where nothing drifts.
TEST(Troubles, SteadyGainLosesNothing) { expect_found(test::Trouble::none, 5e-3, 40e-3); }

}  // namespace
}  // namespace ryle::pipeline
