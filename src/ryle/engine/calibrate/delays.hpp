// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ryle/core/samples.hpp"

namespace ryle::calibrate {

/// A delay of an input against another, from gains over a band.
struct Delay {
  double delay_s = 0;       ///< lateness: g ~ exp(-2 pi i nu delay), modulo 1 / channel width
  double phase_rad = 0;     ///< at the middle of the band
  double sigma_s = 0;       ///< of the delay, from the scatter about the fit
  double sigma_rad = 0;     ///< of the phase at the middle of the band
  double coherence = 0;     ///< sum Re(g fit*) over sum |g|: 1 = a straight line explains it all
  std::int64_t n_used = 0;  ///< channels; fewer than 3: no delay
};

/// Fits delay and phase of one input: the peak of the zero-padded transform over the channels, then
/// least squares about it, for an amplitude that is the same over the band. Flagged channels (gain
/// 0) have no weight.
/// @shape gains [channel], in even steps of channel_width_hz
/// @param weights [channel] 1 / variance of the phase; empty: all equal
/// @eq phi(nu) = phase - 2 pi (nu - nu_mid) delay; sigma_delay = sigma_phi / (2 pi sqrt(C)
/// rms(nu))
Delay fit_delay(std::span<const cf64> gains, std::span<const double> weights,
                double channel_width_hz);

}  // namespace ryle::calibrate
