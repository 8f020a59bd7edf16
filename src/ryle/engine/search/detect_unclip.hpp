// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cmath>

#ifdef __CUDACC__
#define RYLE_SEARCH_HOST_DEVICE __host__ __device__
#else
#define RYLE_SEARCH_HOST_DEVICE
#endif

/// Private to the engine: mean and rms from what is left between two clips, the same bits on the
/// host and on the device. Plain additions, products, quotients and roots only, none of them fused.
namespace ryle::search::detail {

RYLE_SEARCH_HOST_DEVICE inline double product(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dmul_rn(a, b);  // never part of a fused multiply-add
#else
  return a * b;
#endif
}

/// @eq 1 - 2 z phi(z) / erf(z / sqrt 2): what clipping at z sigma leaves of the variance. With the
/// series of erf the exponentials cancel: = 1 - 1 / sum_n z^2n / (2 n + 1)!! (DLMF 7.6.2).
RYLE_SEARCH_HOST_DEVICE inline double variance_left(double z) {
  const double square = product(z, z);
  double term = 1, sum = 1;
  for (double odd = 3; product(1e17, term) > sum; odd += 2) {
    term = product(term, square / odd);
    sum += term;
  }
  return 1 - 1 / sum;
}

/// Mean above the center and rms of n values with the given sums, |value| <= clip.
struct Unclipped {
  double mean = 0, sigma = 0;
};
RYLE_SEARCH_HOST_DEVICE inline Unclipped unclipped_of(double n, double sum, double squares,
                                                      double clip) {
  Unclipped u;
  u.mean = sum / n;
  const double variance = squares / n - product(u.mean, u.mean);
  const double cut = std::sqrt(variance > 0 ? variance : 0.0);
  u.sigma = cut;
  for (int k = 0; k < 8 && u.sigma > 0; ++k) {
    const double z = (clip + 0.5) / u.sigma;
    if (z > 8) break;
    const double left = variance_left(z);
    u.sigma = cut / std::sqrt(left > 0.05 ? left : 0.05);
  }
  return u;
}

}  // namespace ryle::search::detail
