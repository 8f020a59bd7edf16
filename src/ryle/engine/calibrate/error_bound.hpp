// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/core/samples.hpp"
#include "ryle/engine/calibrate/equations.hpp"

namespace ryle::calibrate {

/// What inputs measure, in any unit of power.
struct BoundInput {
  std::int64_t n_inputs = 0;
  std::vector<cf64> signal;   ///< [a][b] g_a conj(g_b) M_ab, the diagonal too
  std::vector<double> noise;  ///< [a] power of the receiver and of what the model lacks; > 0
  double n_samples = 0;       ///< independent samples behind a visibility
};

/// 1 sigma of any unbiased estimate. @shape [input] @unit radians; amplitudes relative to them
struct ErrorBound {
  std::vector<double> phase_rad, amplitude;
};

/// The Cramer-Rao bound of gains whose noise powers are not known either: baselines of an input
/// share its noise, so that errors of bright sources are larger than those of independent
/// baselines. Phases are against the mean phase of the inputs.
/// @eq F_ij = n tr(R^-1 dR_i R^-1 dR_j), R = signal + diag(noise). With B = R^-1 and C_ab = R_ab
/// B_ba: F_phi,phi = 2 Re C - 2, F_phi,amp = -2 Im C, F_amp,amp = 2 Re C + 2 - 4 diag(d) N^-1
/// diag(d), N_ab = noise_a noise_b |B_ab|^2, d_a = noise_a B_aa. One source of flux S in noise 1:
/// sigma^2 = (1 + 1/(n_inputs S)) / (2 n_samples S). Throws ConfigError for noise that is not above
/// 0 and for inputs that nothing connects.
ErrorBound error_bound(const BoundInput& input);
/// Inputs up to which the bound has the covariance of phases with amplitudes, which several sources
/// bring: above, each is bounded by itself (an eighth of the time).
inline constexpr std::int64_t kMaxCoupledInputs = 320;

/// How strong a model is in visibilities before any gain is known.
struct Strength {
  double flux = 0;   ///< V = flux M + noise for gains of modulus 1
  double noise = 0;  ///< mean of w |V - flux M|^2
  bool detected = false;
  double limit = 0;  ///< the flux from which it would have been detected
};
/// The larger of two estimates: of the sum of V conj(M), which needs phases that are about right,
/// and of the largest eigenvalue of T, which needs none. @param n_samples behind a visibility of
/// system power 1, 0 = not known: independent noise is then taken
/// @eq eigenvalue of flux F: lambda = n F + gamma + gamma / (n F), gamma = n / n_samples
/// (Marchenko & Pastur 1967, Baik, Ben Arous & Peche 2005)
Strength model_strength(const Equations& equations, std::int64_t solution, double n_samples);

}  // namespace ryle::calibrate
