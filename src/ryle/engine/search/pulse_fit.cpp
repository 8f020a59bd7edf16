// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/pulse_fit.hpp"

#include <algorithm>
#include <cmath>

namespace ryle::search::detail {
namespace {

constexpr std::int64_t kBins = 256;  // of the coarse search
constexpr std::int64_t kWidestBins = 64;
/// Lines as wide as can be tried are tried wider up to here: centroids under a window that is
/// narrower than the pulse have errors larger than those of a window of its width.
constexpr std::int64_t kWidestColumns = 512;

/// Prefix sums of a window of the plane, columns joined to bins.
struct Coarse {
  std::int64_t first = 0, factor = 1, n_bins = 0;
  std::vector<double> sums, counts;  // [group][n_bins + 1]

  Coarse(const GroupPlane& plane, std::int64_t from, std::int64_t to) : first(from) {
    factor = std::max<std::int64_t>(1, (to - from + kBins - 1) / kBins);
    n_bins = (to - from + factor - 1) / factor;
    for (std::int64_t g = 0; g < plane.n_groups; ++g) {
      double sum = 0, count = 0;
      for (std::int64_t b = 0; b < n_bins; ++b) {
        sums.push_back(sum);
        counts.push_back(count);
        for (std::int64_t t = from + b * factor; t < std::min(to, from + (b + 1) * factor); ++t) {
          sum += static_cast<double>(plane.sums[plane.at(g, t)]);
          count += static_cast<double>(plane.counts[plane.at(g, t)]);
        }
      }
      sums.push_back(sum);
      counts.push_back(count);
    }
  }
};

struct CoarseBest {
  double score = 0, dm = 0;
  std::int64_t bin = 0, width = 1;
};

/// Boxcars of `width` bins along lines of `dm` that touch the run.
void try_lines(const GroupPlane& plane, const Coarse& c, double dm, std::int64_t width,
               std::int64_t run_first, std::int64_t run_end, CoarseBest& best) {
  std::vector<std::int64_t> shift;
  for (const double d : plane.delay_per_dm)
    shift.push_back(std::llround(dm * d / static_cast<double>(c.factor)));
  const std::int64_t sweep = *std::max_element(shift.begin(), shift.end());
  const std::int64_t from = (run_first - c.first) / c.factor - sweep - width + 1;
  const std::int64_t to = (run_end - c.first + c.factor - 1) / c.factor;
  for (std::int64_t a = from; a < to; ++a) {
    double sum = 0, count = 0;
    for (std::int64_t g = 0; g < plane.n_groups; ++g) {
      const std::int64_t row = g * (c.n_bins + 1);
      const std::int64_t lo = std::clamp<std::int64_t>(a + shift[g], 0, c.n_bins);
      const std::int64_t hi = std::clamp<std::int64_t>(lo + width, 0, c.n_bins);
      sum += c.sums[row + hi] - c.sums[row + lo];
      count += c.counts[row + hi] - c.counts[row + lo];
    }
    const double score = count > 0 ? sum / std::sqrt(count) : 0;
    if (score > best.score) best = {score, dm, a, width};
  }
}

struct Sums {
  double flux = 0, noise = 0, first = 0, second = 0;  // weighted moments about the line
};

/// Sums under a Gaussian window: with the width of the pulse, twice the centroid is the shift and
/// its error that of a matched filter.
Sums sums_about(const GroupPlane& plane, std::int64_t group, double center, double sigma) {
  Sums s;
  const auto lo = std::max<std::int64_t>(0, std::llround(std::ceil(center - 3 * sigma)));
  const auto hi =
      std::min<std::int64_t>(plane.n_columns - 1, std::llround(std::floor(center + 3 * sigma)));
  // Most of the window must be there: its centroid would be that of the gap.
  if (static_cast<double>(hi - lo) < 4 * sigma - 2) return s;
  for (std::int64_t t = lo; t <= hi; ++t) {
    const double x = static_cast<double>(t) - center;
    const double w = std::exp(-0.5 * x * x / (sigma * sigma));
    const auto sum = static_cast<double>(plane.sums[plane.at(group, t)]);
    const auto count = static_cast<double>(plane.counts[plane.at(group, t)]);
    s.flux += w * sum;
    s.noise += w * w * count;
    s.first += w * x * sum;
    s.second += w * w * x * x * count;
  }
  return s;
}

/// One round of centroids of the groups and the line through them. @return groups used
int refit(const GroupPlane& plane, GroupTrack& track, double sigma) {
  double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0, wyy = 0;
  int used = 0;
  for (std::int64_t g = 0; g < plane.n_groups; ++g) {
    const double center = track.at_column(plane, g);
    const Sums s = sums_about(plane, g, center, sigma);
    if (!(s.noise > 0) || !(s.flux > 2 * std::sqrt(s.noise))) continue;
    const double error = 2 * std::sqrt(s.second) / s.flux;  // of the centroid, from noise
    const double weight = 1 / (error * error + 0.01);       // and a tenth of a column
    const double x = plane.delay_per_dm[g];
    const double y = center + 2 * s.first / s.flux;
    w += weight;
    wx += weight * x;
    wxx += weight * x * x;
    wy += weight * y;
    wxy += weight * x * y;
    wyy += weight * y * y;
    ++used;
  }
  const double spread = wxx - (w > 0 ? wx * wx / w : 0);
  if (used < 3 || !(spread > 0)) return used;
  track.dm = (wxy - wx * wy / w) / spread;
  track.column = (wy - track.dm * wx) / w;
  const double misfit = std::max(0.0, wyy - wy * wy / w - track.dm * track.dm * spread);
  track.dm_error = std::sqrt(std::max(1.0, misfit / (used - 2)) / spread);
  return used;
}

/// Columns without a DM-0 burst of their own: what lies off the line stays below 5 sigma.
void explain(const GroupPlane& plane, std::int64_t first, std::int64_t end, GroupTrack& track) {
  double on_line = 0, off_line = 0, noise = 0, whole = 0, whole_on_line = 0;
  for (std::int64_t t = first; t < end; ++t) {
    double on = 0, off = 0, off_count = 0;
    for (std::int64_t g = 0; g < plane.n_groups; ++g) {
      const double distance = std::abs(static_cast<double>(t) - track.at_column(plane, g));
      const auto sum = static_cast<double>(plane.sums[plane.at(g, t)]);
      if (distance <= track.half_width) {
        on += sum;
      } else {
        off += sum;
        off_count += static_cast<double>(plane.counts[plane.at(g, t)]);
      }
    }
    whole += on + off;
    whole_on_line += on;
    if (off_count > 0 && off > 5 * std::sqrt(off_count)) continue;
    on_line += on;
    off_line += off;
    noise += off_count;
  }
  // Noise off the line is no excess that a line would have to explain; runs are chosen for being
  // high, so two sigma of it.
  constexpr double kNoise = 2;
  off_line = off_line > 0 ? std::max(0.0, off_line - kNoise * std::sqrt(noise)) : off_line;
  const double all = on_line + off_line;
  track.explained = all > 0 ? on_line / all : 0;
  track.share = whole > 0 ? whole_on_line / whole : 0;
}

}  // namespace

GroupTrack fit_track(const GroupPlane& plane, std::int64_t first, std::int64_t end, double dm_max) {
  const double per_dm = *std::max_element(plane.delay_per_dm.begin(), plane.delay_per_dm.end());
  const std::int64_t length = end - first;
  const double maximum = dm_max * per_dm;  // columns
  // Of the window on either side; lines are swept over no more than `maximum` of it.
  double reach = std::min(maximum, static_cast<double>(std::max<std::int64_t>(64, 4 * length)));
  CoarseBest best;
  double zero_score = 0;
  std::int64_t factor = 1, origin = 0;
  for (;;) {
    const std::int64_t margin = static_cast<std::int64_t>(reach) + length;
    const bool whole = first <= margin && plane.n_columns - end <= margin;
    const Coarse coarse(plane, std::max<std::int64_t>(0, first - margin),
                        std::min(plane.n_columns, end + margin));
    best = {};
    factor = coarse.factor;
    origin = coarse.first;
    const auto steepest = static_cast<std::int64_t>(std::min(reach, maximum));
    // The steepest line may sweep less than a bin of a window grown for wide ones.
    const std::int64_t stride =
        reach > maximum ? std::clamp<std::int64_t>(steepest / 16, 1, factor) : factor;
    for (std::int64_t sweep = 0; sweep <= steepest; sweep += stride) {
      const double dm = per_dm > 0 ? static_cast<double>(sweep) / per_dm : 0;
      // A group is itself swept over a sixteenth of the line.
      for (std::int64_t width = 1; width <= kWidestBins; width *= 2)
        if (2 * width * plane.n_groups * factor >= sweep)
          try_lines(plane, coarse, dm, width, first, end, best);
      if (sweep == 0) zero_score = best.score;
    }
    const bool steep = best.dm * per_dm > 0.9 * reach;
    const bool wide = best.width == kWidestBins && best.width * factor < kWidestColumns;
    if (reach < maximum) {
      if (!(steep || wide)) break;
      reach = std::min(maximum, 4 * reach);
    } else {
      // No steeper lines; a larger window joins more columns to a bin, for wider ones.
      if (!wide || whole) break;
      reach = std::max(64.0, 4 * reach);
    }
  }
  GroupTrack track;
  track.score = best.score;
  track.zero_score = zero_score;
  if (!(best.score > 0)) return track;
  track.dm = best.dm;
  track.dm_error = 1e30;
  track.column = static_cast<double>(origin + best.bin * factor) +
                 0.5 * static_cast<double>(best.width * factor - 1);
  const double group_sweep = best.dm * per_dm / static_cast<double>(plane.n_groups);
  track.half_width = static_cast<double>(best.width * factor) + 0.5 * group_sweep + 2;
  // A boxcar fits a Gaussian best at 1.19 FWHM; the sweep within a group adds its variance.
  const double boxcar = static_cast<double>(best.width * factor) / (1.19 * 2.3548);
  const double sigma = std::max(0.7, std::sqrt(boxcar * boxcar + group_sweep * group_sweep / 12));
  for (int round = 0; round < 6; ++round)
    if (refit(plane, track, sigma) < 3) {
      track.dm_error = 1e30;
      break;
    }
  explain(plane, first, end, track);
  return track;
}

}  // namespace ryle::search::detail
