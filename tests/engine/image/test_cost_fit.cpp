// SPDX-License-Identifier: BSD-3-Clause
// Costs from injected times: no clock is involved.
#include "ryle/engine/image/cost_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ryle::image {
namespace {

// Gridding and transforms of few and of many antennas, as the calibration times them.
constexpr double kFft_s = 1 / 20e9, kGrid_s = 1 / 30e9;
std::vector<TimedRun> two_runs(double fft_s, double grid_s) {
  std::vector<TimedRun> runs{{{4e9, 1e9}, 0}, {{5e9, 9e9}, 0}};
  for (auto& run : runs) run.seconds = run.operations[0] * fft_s + run.operations[1] * grid_s;
  return runs;
}

TEST(CostFit, FindsTheCostsThatMadeTheTimes) {
  for (const double factor : {0.3, 1.0, 3.0}) {
    const auto costs = fit_costs(two_runs(kFft_s, factor * kGrid_s), {kFft_s, kGrid_s});
    EXPECT_NEAR(costs[0], kFft_s, 1e-6 * kFft_s);
    EXPECT_NEAR(costs[1], factor * kGrid_s, 1e-6 * factor * kGrid_s);
  }
}

// A machine ten times slower is no reason for bounds: only proportions are judged.
TEST(CostFit, AnySpeedIsFine) {
  for (const double slower : {1e-3, 10.0, 1e4}) {
    const auto costs = fit_costs(two_runs(slower * kFft_s, slower * kGrid_s), {kFft_s, kGrid_s});
    EXPECT_NEAR(costs[0] / (slower * kFft_s), 1, 1e-6);
    EXPECT_NEAR(costs[1] / (slower * kGrid_s), 1, 1e-6);
  }
}

// The small case disturbed so much that the two equations have a negative solution: 4 f + g = 10
// and 5 f + 9 g = 2 mean g < 0.
TEST(CostFit, NoiseMakesNoCostNegativeOrAbsurd) {
  for (const double disturbed : {0.02, 0.1, 10.0, 50.0}) {
    auto runs = two_runs(kFft_s, kGrid_s);
    runs[0].seconds *= disturbed;
    const double factor = std::sqrt(disturbed);  // geometric mean of 1 and `disturbed`
    const auto costs = fit_costs(runs, {kFft_s, kGrid_s});
    EXPECT_GE(costs[0], factor * kFft_s / kMaxOff * (1 - 1e-9)) << disturbed;
    EXPECT_LE(costs[0], factor * kFft_s * kMaxOff * (1 + 1e-9)) << disturbed;
    EXPECT_GE(costs[1], factor * kGrid_s / kMaxOff * (1 - 1e-9)) << disturbed;
    EXPECT_LE(costs[1], factor * kGrid_s * kMaxOff * (1 + 1e-9)) << disturbed;
  }
}

// Runs that cannot tell the costs apart: one factor for both.
TEST(CostFit, OneRunScalesWhatIsExpected) {
  const auto costs =
      fit_costs({{{4e9, 1e9}, 3 * (4e9 * kFft_s + 1e9 * kGrid_s)}}, {kFft_s, kGrid_s});
  EXPECT_NEAR(costs[0], 3 * kFft_s, 1e-6 * kFft_s);
  EXPECT_NEAR(costs[1], 3 * kGrid_s, 1e-6 * kGrid_s);
}

TEST(CostFit, TimesThatAreNoneCountNothing) {
  auto runs = two_runs(kFft_s, kGrid_s);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {0.0, -1.0, nan, std::numeric_limits<double>::infinity()}) {
    auto more = runs;
    more.push_back({{1e9, 1e9}, bad});
    const auto costs = fit_costs(more, {kFft_s, kGrid_s});
    EXPECT_NEAR(costs[0], kFft_s, 1e-6 * kFft_s) << bad;
    for (auto& run : more) run.seconds = bad;
    EXPECT_EQ(fit_costs(more, {kFft_s, kGrid_s}), (std::vector<double>{kFft_s, kGrid_s})) << bad;
  }
}

}  // namespace
}  // namespace ryle::image
