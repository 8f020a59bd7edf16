// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/search/search.hpp"

/// Approximate sums in two stages: channels of a sub-band are summed along the delays of few
/// trials, and every trial adds one such row of each sub-band. Which trials share a row follows
/// from how far a channel may lie off its planned delay.
/// @eq D[i][t] = sum over sub-bands s of S[s, g][t + start(i, s)], S[s, g][t] = sum over channels c
/// of s of x[c][t + relative(g, c)], g = group of trial i in s
namespace ryle::search::detail {

struct Subband {
  std::int64_t first_channel = 0, n_channels = 0;
  std::vector<std::int32_t> group;     ///< [trial], ascending
  std::vector<std::int32_t> start;     ///< [trial], >= 0
  std::vector<std::int32_t> relative;  ///< [group][channel], >= 0
  std::int64_t n_groups() const { return static_cast<std::int64_t>(relative.size()) / n_channels; }
};

struct SubbandPlan {
  std::vector<Subband> subbands;
  TrackError error;
  /// Samples a channel of a trial really is delayed by.
  std::int32_t track(std::int64_t trial, std::int64_t channel) const;
};

/// Trials that follow one another share a group while no channel is off by more than
/// `smear_samples` with the start that suits the trial best; no delay exceeds the table's largest.
SubbandPlan subband_plan(const DedisperseConfig& config, std::int64_t channels_per_subband);
/// The width of sub-bands with the fewest additions. smear_samples below 1 count as 1.
SubbandPlan subband_plan(const DedisperseConfig& config);

/// Additions of rows for one output of every trial; a row of bytes of the first stage counts less.
double subband_work(const SubbandPlan& plan);

}  // namespace ryle::search::detail
