// SPDX-License-Identifier: BSD-3-Clause
// Lines through groups of channels: what they are off by, and what they leave unexplained.
#include "ryle/engine/search/pulse_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "ryle/core/random.hpp"

namespace ryle::search::detail {
namespace {

constexpr std::int64_t kGroups = 16, kChannels = 64;  // in each group
constexpr double kSweepPerDm = 48;                    // columns

/// Noise of rms 1 in every channel, or none. @shape [group][n]
GroupPlane plane_of(std::int64_t n, bool noise, std::uint64_t seed) {
  GroupPlane plane;
  plane.n_groups = kGroups;
  plane.n_columns = n;
  for (std::int64_t g = 0; g < kGroups; ++g)
    plane.delay_per_dm.push_back(kSweepPerDm * static_cast<double>(g) / kGroups);
  plane.counts.assign(static_cast<std::size_t>(kGroups * n), static_cast<float>(kChannels));
  for (std::size_t k = 0; k < plane.counts.size(); ++k)
    plane.sums.push_back(
        noise ? static_cast<float>(std::sqrt(kChannels) * gaussian(combine(seed, k))) : 0.0f);
  return plane;
}

/// A Gaussian whose matched filter has the S/N.
void add_pulse(GroupPlane& plane, double column, double dm, double fwhm, double snr) {
  const double sigma = fwhm / 2.3548;
  // sum p^2 of unit height over all groups is kGroups sigma sqrt(pi); noise of a group 8.
  const double height =
      snr * std::sqrt(static_cast<double>(kChannels)) / std::sqrt(kGroups * sigma * 1.7725);
  for (std::int64_t g = 0; g < kGroups; ++g)
    for (std::int64_t t = 0; t < plane.n_columns; ++t) {
      const double x =
          (static_cast<double>(t) - column - dm * plane.delay_per_dm[static_cast<std::size_t>(g)]) /
          sigma;
      plane.sums[plane.at(g, t)] += static_cast<float>(height * std::exp(-0.5 * x * x));
    }
}

/// Of fits to a pulse much wider than the 37 columns of it that stand out: rms of what their DMs
/// are off by, in units of the error.
double rms_of_wide_pulses(std::int64_t n, double dm_max) {
  constexpr int kDraws = 20;
  double squares = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    auto plane = plane_of(n, true, 400 + static_cast<std::uint64_t>(draw));
    const std::int64_t middle = n / 2 - 36;
    add_pulse(plane, static_cast<double>(middle), 1, 391, 25);
    const GroupTrack track = fit_track(plane, middle - 18, middle + 19, dm_max);
    EXPECT_LT(track.dm_error, 1e29) << draw;
    const double off = (track.dm - 1) / track.dm_error;
    squares += off * off;
  }
  return std::sqrt(squares / kDraws);
}

// The DM of a wide pulse is off by as much as the error says, however far DMs are searched. Of 20
// draws the rms in units of the error is 1 +- 0.16, widths of powers of two make it up to 1.4: 1.1
// of these. Under a window of a third of the pulse it was 5.
TEST(PulseFit, ErrorsOfWidePulses) {
  for (const double dm_max : {2.0, 3.0, 5.0, 10.0, 1000.0})
    EXPECT_LT(rms_of_wide_pulses(3072, dm_max), 2) << dm_max;
  // No window of this plane joins columns enough for the widest line.
  EXPECT_LT(rms_of_wide_pulses(1200, 3), 2);
}

// What noise leaves beside the line of a narrow pulse is no excess that the line would have to
// explain: off it 3.4 sigma here, in a run that was chosen for being high.
TEST(PulseFit, NoiseBesideALineNeedsNoExplanation) {
  auto plane = plane_of(2048, false, 0);
  const std::int64_t first = 1000, end = 1046;
  add_pulse(plane, 1010, 0.5, 2, 17);
  const double off_noise = std::sqrt(static_cast<double>((end - first) * kGroups * kChannels));
  for (std::int64_t t = first; t < end; ++t)
    for (std::int64_t g = 0; g < kGroups; ++g)
      plane.sums[plane.at(g, t)] +=
          static_cast<float>(3.4 * off_noise / static_cast<double>(kGroups * (end - first)));
  const GroupTrack track = fit_track(plane, first, end, 1000);
  EXPECT_NEAR(track.dm, 0.5, 0.1);
  EXPECT_GT(track.explained, 0.8);
  EXPECT_LT(track.explained, 1);
}

}  // namespace
}  // namespace ryle::search::detail
