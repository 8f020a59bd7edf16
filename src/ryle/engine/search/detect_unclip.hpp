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

/// 1 / (2 n + 3): products instead of quotients.
struct OddInverses {
  static constexpr int kN = 160;  // z = 8 needs 140
  static constexpr int kStep = 8;
  double of[kN];
};
constexpr OddInverses odd_inverses() {
  OddInverses list{};
  for (int n = 0; n < OddInverses::kN; ++n) list.of[n] = 1.0 / (2 * n + 3);
  return list;
}
inline constexpr OddInverses kOddInverses = odd_inverses();
#ifdef __CUDACC__
static __constant__ const OddInverses kDeviceOddInverses = odd_inverses();
#endif

/// @eq 1 - 2 z phi(z) / erf(z / sqrt 2): what clipping at z sigma leaves of the variance. With the
/// series of erf the exponentials cancel: = 1 - 1 / sum_n z^2n / (2 n + 1)!! (DLMF 7.6.2).
RYLE_SEARCH_HOST_DEVICE inline double variance_left(double z) {
#ifdef __CUDA_ARCH__
  const double* inverse = kDeviceOddInverses.of;
#else
  const double* inverse = kOddInverses.of;
#endif
  const double square = product(z, z);
  // Terms rise, then fall; from the first below 1e-17 of the sum on they change nothing: some more
  // of them cost less than to look after each.
  double term = 1, sum = 1;
  const double minimum = 1e17;
  for (int n = 0; n < OddInverses::kN && product(minimum, term) > sum; n += OddInverses::kStep) {
    for (int k = n; k < n + OddInverses::kStep; ++k) {
      term = product(term, product(square, inverse[k]));
      sum += term;
    }
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
