// SPDX-License-Identifier: BSD-3-Clause
// What the CUDA gridder computes is written in functions for host and device: kernels say which
// thread does what, tests run the same functions thread by thread. Private to the engine.
#pragma once

#ifdef __CUDACC__
#define RYLE_HD __host__ __device__
#else
#define RYLE_HD
#endif

namespace ryle::grid::detail {

/// Lanes of a warp, each of which holds one cell.
inline constexpr int kWarp = 32;

/// One rounding each, wherever they stand: contracted into multiply-adds at one place and not at
/// another, sums of a channel and sums for all channels would part in their last bit.
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

}  // namespace ryle::grid::detail
