// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/image/imager.hpp"
#include "ryle/telescope/observation.hpp"

namespace ryle::image {

struct Selection {
  /// FITS STOKES code: 1 = I = (XX + YY)/2, 2 = Q = (XX - YY)/2, -5 = XX, -6 = YY. With one pol, 1
  /// and -5 mean that pol.
  int stokes = 1;
  bool autocorrelations = false;
  std::int64_t first_channel = 0;
  std::int64_t n_channels = 0;  ///< 0 = to the end
  double min_baseline_wavelengths = 0;
  double max_baseline_wavelengths = 0;  ///< 0 = no limit
  /// Divides V_ij by sqrt(A_i A_j) of the same channel, so that every input counts the same
  /// whatever its gain.
  bool equalize_inputs = false;
};

/// Samples of a dump, baseline by baseline and channels ascending, the order the fast imager likes
/// best. (u, v, w) in the frame of observation.phase_center at the centroid of the dump; weights
/// are the counts of valid spectra. Inputs marked bad and values with a count of 0 are left out.
std::vector<Sample> samples_of(const Observation& observation, const VisibilityDump& dump,
                               const Selection& selection = {});
/// Samples of several dumps, one after the other.
std::vector<Sample> samples_of(const Observation& observation,
                               const std::vector<VisibilityDump>& dumps,
                               const Selection& selection = {});

}  // namespace ryle::image
