// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

/// Spectral kurtosis of power (Nita & Gary 2010, MNRAS 406, L60): 1 for Gaussian noise whatever
/// its level, above for bursts, below for steady tones.
namespace ryle::search {

/// @eq SK = (M d + 1)/(M - 1) (M S2/S1^2 - 1), from mean and rms (1/M) of M powers, each the sum
/// of d pairs of Gaussian degrees of freedom (|voltage|^2: d = 1; both polarizations: 2)
double spectral_kurtosis(double mean, double rms, std::int64_t n_samples, double degrees);

struct KurtosisLimits {
  double low = 0, high = 0;
};
/// Limits that SK of noise leaves with `probability` on each side: quantiles of the Pearson
/// distribution with the exact first four moments of SK. n_samples >= 8, degrees >= 0.5.
KurtosisLimits kurtosis_limits(std::int64_t n_samples, double degrees,
                               double probability = 0.0013499);

}  // namespace ryle::search
