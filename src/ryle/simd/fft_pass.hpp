// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

namespace ryle::simd {

/// One pass of a transform in Stockham order, decimation in frequency; S is the sign of the
/// transform.
/// @eq y[q + s (R p + j)] = w^(jp) sum_l x[q + s (p + m l)] exp(S 2 pi i j l / R),
///     w = exp(S 2 pi i / mR)
template <class Real>
struct FftPass {
  int radix = 0;                   ///< R: 2, 3, 4, 5, 7, 8 or 16
  std::int64_t rest = 0;           ///< m: parts
  std::int64_t stride = 0;         ///< s
  const Real* twiddles = nullptr;  ///< [rest][radix - 1][re, im]
};

}  // namespace ryle::simd
