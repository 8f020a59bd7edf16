// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

/// Private to the engine: a dispersed line through groups of channels.
namespace ryle::search::detail {

/// Excess of groups of channels. @shape sums, counts [group][column]; count 0 = nothing there
struct GroupPlane {
  std::int64_t n_groups = 0, n_columns = 0;
  std::vector<float> sums, counts;
  std::vector<double> delay_per_dm;  ///< [group], columns, relative to the earliest group

  std::size_t at(std::int64_t group, std::int64_t column) const {
    return static_cast<std::size_t>(group * n_columns + column);
  }
};

struct GroupTrack {
  double dm = 0, dm_error = 0;
  double column = 0;      ///< of the earliest group
  double half_width = 0;  ///< columns about the line that hold the pulse
  double explained = 0;   ///< part of the excess of the run on the line, columns with a burst
                          ///< of their own left out
  double share = 0;       ///< part of all of the excess of the run on the line
  double score = 0;       ///< S/N of the line; 0 = nothing found
  double zero_score = 0;  ///< of the best one at DM 0
  double at_column(const GroupPlane& plane, std::int64_t group) const {
    return column + dm * plane.delay_per_dm[group];
  }
};

/// Best line through the columns [first, end), DM 0 .. dm_max.
GroupTrack fit_track(const GroupPlane& plane, std::int64_t first, std::int64_t end, double dm_max);

}  // namespace ryle::search::detail
