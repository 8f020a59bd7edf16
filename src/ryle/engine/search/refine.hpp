// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/search/dispersion.hpp"

/// Best dispersion measure, time and width of a pulse by a matched filter on the time-frequency
/// plane, with fractional delays.
/// @eq S = sum_ct (x_ct - mean) p_ct / (sigma sqrt(sum_ct p_ct^2)), p = Gaussian * channel smearing
/// * sample, over unmasked channels
namespace ryle::search {

/// Codes about an event. @shape codes [channel][time] u8, column 0 = `first_tick`
struct RefineInput {
  const std::uint8_t* codes = nullptr;
  std::int64_t stride = 0;
  std::int64_t first_tick = 0;
  std::int64_t n_samples = 0;
  const std::uint8_t* masked = nullptr;  ///< [channel], 1 = leave out
  double mean = 0;                       ///< code of nothing
  double sigma = 0;  ///< rms of one channel's code, as the dedispersed sums have it
};

struct Pulse {
  double dm_pc_cm3 = 0;
  double tick = 0;  ///< center of the pulse at the highest channel, samples
  double fwhm_samples = 0;
  double snr = 0;
};

struct RefinedPulse : Pulse {
  double dm_error = 0;  ///< 1 sigma, from the curvature of S^2 / 2, else those of its width alone
  double tick_error = 0;
  double fwhm_error = 0;  ///< 0: none could be given
  double amplitude = 0;   ///< fluence in sigma x samples of the band average
};

/// S of one template.
double matched_snr(const Band& band, const RefineInput& input, const Pulse& pulse);
/// Climbs from `start` (its snr is not used).
RefinedPulse refine(const Band& band, const RefineInput& input, const Pulse& start);

}  // namespace ryle::search
