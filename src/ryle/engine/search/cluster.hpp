// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ryle/engine/search/search.hpp"

/// Hits of a beam to events, one for each pulse.
///
/// A pulse of S/N S, width W and sweep s fills, at a sweep s + d, the samples from d before its
/// first to its last one (d > 0; d < 0 after it), with its flux S sqrt(W) spread over them: the bow
/// tie. A boxcar of w samples that shares o of them is expected at
/// @eq E = S sqrt(W) min(o / max(W, |d|), 1) / sqrt(w)
/// The strongest hit begins an event; every hit that it explains, S/N <= 2 E + 4, joins it:
/// side lobes, narrow boxcars on a wide pulse, wide ones about a narrow pulse. Then the strongest
/// of what is left begins the next one, unless all events together explain it or leave less than
/// the threshold of it, S - E. 2: the peak of a Gaussian lies 1.33 above the mean of its best
/// boxcar, bands are not filled evenly, the DM of the strongest hit is off; 4: noise, the best of
/// many. Exponential tails, which scattering leaves behind a pulse, and what continues a boxcar of
/// the greatest width belong to the event, too.
///
/// A boxcar across two pulses may be the strongest of all. It begins no event when boxcars within
/// it that do not overlap tell more, sum (S_k^2 - 8) > 1.2 S^2 (a Gaussian decomposed as finely as
/// may be has 1.12 S^2): those begin one each. The hits are the best of 64 starts (detect.hpp):
/// pulses of one width are told apart from 2 widths and 64 samples on, wide ones from two blocks of
/// starts on.
namespace ryle::search {

struct ClusterConfig {
  std::vector<double> sweep_samples;   ///< [trial]: delay across the band, ascending
  double threshold = 7;                ///< of the hits
  std::int64_t max_width = kMaxWidth;  ///< of the hits
  std::int64_t reach_samples = 8192;   ///< no hit explains another farther off in time
};

struct Cluster {
  Hit best;  ///< highest S/N; ties to the earliest, then the lowest trial, then the narrowest
  std::int64_t n_hits = 0;
  std::int64_t begin = 0, end = 0;  ///< first sample of the first, end of the last hit
  std::int32_t lowest_trial = 0, highest_trial = 0;
};

/// Hits wait until none to come can have to do with them, in groups that are apart in time.
/// Groups longer than 2 `reach_samples` are cut where they are weakest, so storms do not stall.
/// Events depend on the hits only, not on their order or blocks. No more than 16 events in 1024
/// samples: what is beyond that joins the strongest of them.
class Clusterer {
 public:
  explicit Clusterer(const ClusterConfig& config);
  ~Clusterer();
  Clusterer(const Clusterer&) = delete;
  Clusterer& operator=(const Clusterer&) = delete;

  void add(std::span<const Hit> hits);
  /// Every hit with a start before `tick` has been added. Appends the clusters that are complete,
  /// in order of best.start.
  void close_before(std::int64_t tick, std::vector<Cluster>& closed);
  void close_all(std::vector<Cluster>& closed);
  std::int64_t n_open_hits() const;
  /// First sample of any hit that still waits; the largest number when there is none.
  std::int64_t earliest_open() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ryle::search
