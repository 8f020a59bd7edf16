// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cmath>
#include <cstdint>

#include "ryle/engine/search/detect_unclip.hpp"
#include "ryle/engine/search/drift.hpp"

/// Private to the engine: the steps of DriftFilter, one number after the other, the same bits on
/// the host and on the device (compiled without fused multiply-adds). A cell that is not there is
/// NaN.
namespace ryle::search::detail {

inline constexpr int kDriftJoined = 4;        ///< cells of one of a channel's own level
inline constexpr float kMaxDeviation = 8.0f;  ///< of one channel's cell in the common level
inline constexpr int kDriftLanes = 32;

/// Cells and windows. A plane has the cells of `past` before the output, of the output, and of what
/// is held back.
struct DriftShape {
  int cell = 1;                     ///< samples
  int half = 0;                     ///< cells on either side of one in a window
  int own_half = 0;                 ///< the same of joined cells
  int past = 0;                     ///< cells that windows of windows reach back
  int plane = 0;                    ///< cells of a plane, whole joined ones
  std::int64_t lag = 0, block = 0;  ///< samples
  RYLE_SEARCH_HOST_DEVICE std::int64_t ring() const { return lag + block; }
};

inline DriftShape drift_shape(std::int64_t window_samples, std::int64_t block) {
  DriftShape s;
  constexpr int kLongestCell = 256;  // whole joined ones in a piece
  while (s.cell < kLongestCell && window_samples / (2 * s.cell) >= 64) s.cell *= 2;
  s.half = static_cast<int>(window_samples / s.cell / 2);
  s.own_half = s.half / kDriftJoined > 1 ? s.half / kDriftJoined : 1;
  s.past = (2 * s.half + kDriftJoined) / kDriftJoined * kDriftJoined;
  s.lag = (window_samples / 2 + kDriftStep - 1) / kDriftStep * kDriftStep;
  s.block = block;
  s.plane = s.past + static_cast<int>(s.ring() / s.cell);
  return s;
}

RYLE_SEARCH_HOST_DEVICE inline bool is_there(float x) { return x == x; }
RYLE_SEARCH_HOST_DEVICE inline float within(float x, float limit) {
  return x > limit ? limit : x < -limit ? -limit : x;
}

/// Of the cells of one channel: mean, and their scatter without drift, from successive ones.
struct CellLevel {
  float center = 0, scatter = 0, inverse = 0;  ///< scatter 0: nothing can be said
};

RYLE_SEARCH_HOST_DEVICE inline CellLevel level_of(const float* cells, int n) {
  double sum = 0, squares = 0;
  int count = 0, pairs = 0;
  float before = NAN;
  for (int i = 0; i < n; ++i) {
    const float x = cells[i];
    if (is_there(x)) {
      sum += static_cast<double>(x);
      ++count;
    }
    if (is_there(x) && is_there(before)) {
      const double step = static_cast<double>(x) - static_cast<double>(before);
      squares += step * step;
      ++pairs;
    }
    before = x;
  }
  if (pairs < 4 || !(squares > 0)) return {};
  const double scatter = sqrt(squares / (2.0 * pairs));
  return {static_cast<float>(sum / count), static_cast<float>(scatter),
          static_cast<float>(1 / scatter)};
}

/// Mean of both middle values of those in [first, end) that are there; NaN of none.
RYLE_SEARCH_HOST_DEVICE inline float middle_within(const float* values, int first, int end) {
  int n = 0;
  for (int i = first; i < end; ++i) n += is_there(values[i]) ? 1 : 0;
  const int lower = (n - 1) / 2, upper = n / 2;
  float low = NAN, high = NAN;
  for (int i = first; i < end; ++i) {
    const float x = values[i];
    int below = 0, not_above = 0;
    for (int j = first; j < end; ++j) {
      below += values[j] < x ? 1 : 0;
      not_above += values[j] <= x ? 1 : 0;
    }
    if (below <= lower && lower < not_above) low = x;
    if (below <= upper && upper < not_above) high = x;
  }
  return 0.5f * (low + high);
}

/// Mean of those in [first, end) that are there; 0 of none.
RYLE_SEARCH_HOST_DEVICE inline float mean_within(const float* values, int first, int end) {
  float sum = 0, count = 0;
  for (int i = first; i < end; ++i) {
    if (!is_there(values[i])) continue;
    sum += values[i];
    count += 1;
  }
  return count > 0 ? sum / count : 0.0f;
}

struct CellRange {
  int first = 0, end = 0;
};
/// Cells about one, `half` on either side, of those in `all`.
RYLE_SEARCH_HOST_DEVICE inline CellRange about(int cell, int half, CellRange all) {
  const int first = cell - half, end = cell + half + 1;
  return {first > all.first ? first : all.first, end < all.end ? end : all.end};
}
/// And what the second average takes: cells whose first one had whole windows.
RYLE_SEARCH_HOST_DEVICE inline CellRange averaged(CellRange out, int half) {
  return {out.first > half ? out.first - half : 0, out.end};
}

/// From the first to the last cell that is there.
RYLE_SEARCH_HOST_DEVICE inline CellRange there_of(const float* cells, int n) {
  CellRange r{0, n};
  while (r.first < n && !is_there(cells[r.first])) ++r.first;
  while (r.end > r.first && !is_there(cells[r.end - 1])) --r.end;
  return r;
}
RYLE_SEARCH_HOST_DEVICE inline CellRange joined_range(CellRange r) {
  return {r.first / kDriftJoined, (r.end + kDriftJoined - 1) / kDriftJoined};
}

/// A window that lies evenly about a cell of a segment: shorter towards its ends, where a drift
/// would look like a step from one side only; a quarter of it is left.
RYLE_SEARCH_HOST_DEVICE inline CellRange even_window(int cell, int half, CellRange segment) {
  int here =
      cell - segment.first < segment.end - 1 - cell ? cell - segment.first : segment.end - 1 - cell;
  here = here > half ? half : here < half / 4 ? half / 4 : here;
  return about(cell, here, segment);
}
/// Running median of one cell, and what it leaves, within `limit`. Where the data begin and end
/// windows are shorter, so that they lie evenly about the cell: on one side only, a drift would
/// look like a step. A quarter of a window is left.
RYLE_SEARCH_HOST_DEVICE inline float first_average(const float* cells, int cell, int half,
                                                   CellRange there, float limit, float* left) {
  const CellRange r = even_window(cell, half, there);
  const float middle = middle_within(cells, r.first, r.end);
  const float x = cells[cell];
  *left = is_there(x) && is_there(middle) ? within(x - middle, limit) : NAN;
  return middle;
}
/// The level of one cell of the output; 0: nothing is known.
RYLE_SEARCH_HOST_DEVICE inline float second_average(const float* middles, const float* left,
                                                    int cell, int half, CellRange out) {
  const CellRange r = about(cell, half, averaged(out, half));
  const float middle = middles[cell];
  return is_there(middle) ? middle + mean_within(left, r.first, r.end) : 0.0f;
}

/// Median of the cells about one, a quarter of a window on either side, and 4 of their scatter:
/// what lies beyond is a burst and no level.
RYLE_SEARCH_HOST_DEVICE inline float without_burst(const float* cells, int cell, int half, int n,
                                                   float limit) {
  const CellRange r = about(cell, half / 2, {0, n});
  const float middle = middle_within(cells, r.first, r.end);
  return is_there(cells[cell]) ? middle + within(cells[cell] - middle, limit) : NAN;
}

/// By how much the level behind a boundary lies above that before it: medians of the two quarters
/// of a window on either side, and the lines through them. 0: too little is known.
struct LevelStep {
  float height = 0, slope = 0;  ///< slope: mean of both lines, a cell
};
RYLE_SEARCH_HOST_DEVICE inline LevelStep step_at(const float* cells, int boundary, int half,
                                                 int n) {
  const int part = half / 2;
  if (boundary < 2 * part || boundary + 2 * part > n) return {};
  const float far_before = middle_within(cells, boundary - 2 * part, boundary - part);
  const float before = middle_within(cells, boundary - part, boundary);
  const float after = middle_within(cells, boundary, boundary + part);
  const float far_after = middle_within(cells, boundary + part, boundary + 2 * part);
  const float fall = 0.5f * (after - far_after), rise = 0.5f * (before - far_before);
  const float height = (after + fall) - (before + rise);
  if (!is_there(height)) return {};
  return {height, (rise - fall) / static_cast<float>(part)};
}
/// Noise of step_at(). @eq sqrt(2 (1.5^2 + 0.5^2) pi / 2 / (half / 2)) of a cell's
RYLE_SEARCH_HOST_DEVICE inline float step_noise(float scatter, int half) {
  return scatter * sqrtf(7.854f / static_cast<float>(half / 2));
}
inline constexpr float kStepThreshold = 9.0f;

/// The boundary near `about_boundary` that parts the cells best into two levels.
RYLE_SEARCH_HOST_DEVICE inline int best_boundary(const float* cells, int near, int half, int n) {
  const int part = half / 2;
  const float before = middle_within(cells, near - part, near);
  const float after = middle_within(cells, near, near + part);
  float cost = 0, minimum = 0;
  int best = near - part;
  for (int i = near - part; i < near + part && i < n; ++i) {
    if (!is_there(cells[i])) continue;
    cost += fabsf(cells[i] - before) - fabsf(cells[i] - after);  // of being before it
    if (cost < minimum) {
      minimum = cost;
      best = i + 1;
    }
  }
  return best;
}

/// Whether the few cells next to a boundary differ as the level does: those of a pulse that sweeps
/// the band in a part of a window do not.
RYLE_SEARCH_HOST_DEVICE inline bool is_step(const float* cells, int boundary, int half, int n,
                                            float scatter) {
  const LevelStep step = step_at(cells, boundary, half, n);
  const int few = half / 8 > 2 ? half / 8 : 2;
  if (boundary < few || boundary + few > n) return false;
  const float near = middle_within(cells, boundary, boundary + few) -
                     middle_within(cells, boundary - few, boundary) -
                     step.slope * static_cast<float>(few);
  const float noise = scatter * sqrtf(3.1416f / static_cast<float>(few));  // of both medians
  const float low = 0.5f * fabsf(step.height), high = 2 * fabsf(step.height);
  return (near > 0) == (step.height > 0) && fabsf(near) > 6 * noise && fabsf(near) > low &&
         fabsf(near) < high;
}

/// Parts of a plane in which the level has no step: those that stand out most first, no two within
/// half a window. @shape steps [n], changed; segments [n]
RYLE_SEARCH_HOST_DEVICE inline void find_segments(const float* cells, float* steps, int half, int n,
                                                  float scatter, CellRange* segments) {
  const CellRange all = there_of(cells, n);
  for (int i = 0; i < n; ++i) segments[i] = all;
  const float limit = kStepThreshold * step_noise(scatter, half);
  for (;;) {
    int maximum = 0;
    for (int i = 1; i < n; ++i)
      if (fabsf(steps[i]) > fabsf(steps[maximum])) maximum = i;
    if (!(fabsf(steps[maximum]) > limit) || maximum == 0) return;
    const int boundary = best_boundary(cells, maximum, half, n);
    for (int i = maximum - half > 0 ? maximum - half : 0; i < n && i <= maximum + half; ++i)
      steps[i] = 0;
    if (!is_step(cells, boundary, half, n, scatter)) continue;
    for (int i = 0; i < n; ++i) {
      if (i < boundary && segments[i].end > boundary) segments[i].end = boundary;
      if (i >= boundary && segments[i].first < boundary) segments[i].first = boundary;
    }
  }
}

RYLE_SEARCH_HOST_DEVICE inline CellRange common_part(CellRange a, CellRange b) {
  return {a.first > b.first ? a.first : b.first, a.end < b.end ? a.end : b.end};
}

/// Response of one channel to the common level. @eq sum u m / sum m^2
RYLE_SEARCH_HOST_DEVICE inline float response_of(const float* cells, const CellLevel& level,
                                                 const float* common, int n) {
  double product = 0, square = 0;
  for (int i = 0; i < n; ++i) {
    if (!is_there(cells[i]) || !is_there(common[i])) continue;
    const double u = static_cast<double>((cells[i] - level.center) * level.inverse);
    const auto m = static_cast<double>(common[i]);
    product += u * m;
    square += m * m;
  }
  return square > 0 ? static_cast<float>(product / square) : 0.0f;
}
/// What the common level does not explain of a channel, over one joined cell.
RYLE_SEARCH_HOST_DEVICE inline float own_level(const float* cells, const CellLevel& level,
                                               const float* common, float response, int joined) {
  float sum = 0, count = 0;
  for (int i = kDriftJoined * joined; i < kDriftJoined * (joined + 1); ++i) {
    if (!is_there(cells[i]) || !is_there(common[i])) continue;
    sum += (cells[i] - level.center) * level.inverse - response * common[i];
    count += 1;
  }
  return count > 0 ? sum / count : NAN;
}
/// 3 of the scatter of a joined cell, in units of that of its cells.
inline constexpr float kOwnLimit = 1.5f;

/// What is added to the samples of a cell, or what they are multiplied with, so that their level is
/// `target`.
RYLE_SEARCH_HOST_DEVICE inline float correction_of(const CellLevel& level, float response,
                                                   float common, float own, float target,
                                                   bool multiply) {
  if (!(level.scatter > 0) || !is_there(target)) return multiply ? 1.0f : 0.0f;
  const float now = level.center + level.scatter * (response * common + own);
  if (!multiply) return target - now;
  return now > 0 && target > 0 ? target / now : 1.0f;
}

}  // namespace ryle::search::detail
