// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "ryle/engine/search/dispersion.hpp"

/// Best dispersion measure, time and width of a pulse by a matched filter on the time-frequency
/// plane, with fractional delays.
/// @eq S = sum_ct (x_ct - mean) p_ct / (sigma sqrt(sum_ct p_ct^2)), p = Gaussian * channel smearing
/// * sample * tail exp(-t / tau), over unmasked channels; tau as nu^-4 (thin screen), 0 unless S^2
/// grows by 9 with it
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
  double scattering_samples = 0;  ///< tau at the highest channel
};

/// Of a scattered pulse the center and width are those of the Gaussian before its tail.
struct RefinedPulse : Pulse {
  /// 1 sigma, from the curvature of S^2 / 2, else those of its width alone. Where a tail gains less
  /// than 9 in S^2 they hold what it would change.
  double dm_error = 0;
  double tick_error = 0;
  double fwhm_error = 0;             ///< 0: none could be given
  double amplitude = 0;              ///< fluence in sigma x samples of the band average
  double scattering_error = 0;       ///< 0: no tail is told from none
  double gaussian_fwhm_samples = 0;  ///< of the best template without a tail
  /// Of the pulse with its tail, as a boxcar sees it.
  double whole_fwhm_samples() const { return std::max(fwhm_samples, gaussian_fwhm_samples); }
};

/// S of one template.
double matched_snr(const Band& band, const RefineInput& input, const Pulse& pulse);
/// Climbs from `start` (its snr is not used).
RefinedPulse refine(const Band& band, const RefineInput& input, const Pulse& start);

}  // namespace ryle::search
