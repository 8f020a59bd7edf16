// SPDX-License-Identifier: BSD-3-Clause
// What the CUDA gridder computes is written in functions for host and device: kernels say which
// thread does what, tests run the same functions thread by thread. Private to the engine.
#pragma once
#include <cmath>

#ifdef __CUDACC__
#define RYLE_HD __host__ __device__
#else
#define RYLE_HD
#endif

namespace ryle::grid::detail {

/// Lanes of a warp, each of which holds one cell.
inline constexpr int kWarp = 32;

/// Every product that is added to something is one of the two below, with the roundings it says:
/// left to the compiler, it would be contracted into a multiply-add in kernels of one width and not
/// in those of another, and channels gridded in other groups would part in their last bit.
RYLE_HD inline float times(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
RYLE_HD inline double times(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

/// a b + c with one rounding.
RYLE_HD inline float add_product(float a, float b, float c) { return fmaf(a, b, c); }
RYLE_HD inline double add_product(double a, double b, double c) { return fma(a, b, c); }

/// x^2 + y^2 + z^2, and the product of two vectors.
template <class Real>
RYLE_HD inline Real squared_length(Real x, Real y, Real z) {
  return add_product(x, x, add_product(y, y, times(z, z)));
}
RYLE_HD inline double dot(const double* a, const double* b) {
  return add_product(a[0], b[0], add_product(a[1], b[1], times(a[2], b[2])));
}

}  // namespace ryle::grid::detail
