// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cfloat>

/// Private to the normalizer on the device: single values, and the middle of a few.
namespace ryle::search::detail {

/// In the place of a value that is not there: above all others.
inline constexpr double kNoValue = DBL_MAX;
/// Few values are compared in registers; loops over more are not unrolled.
template <int kMax>
inline constexpr int kInRegisters = kMax <= 32 ? kMax : 1;

__device__ __forceinline__ bool is_number(float x) { return fabsf(x) <= FLT_MAX; }

/// Upper middle of those of kMax values that are not infinite (n of them), 0 of none: the one with
/// at most n / 2 below it and more than n / 2 not above it.
template <int kMax>
__device__ __forceinline__ double middle_of(const double (&values)[kMax], int n) {
  const int middle = n / 2;
  double found = 0;
#pragma unroll(kInRegisters <kMax>)
  for (int i = 0; i < kMax; ++i) {
    int below = 0, not_above = 0;
#pragma unroll(kInRegisters <kMax>)
    for (int j = 0; j < kMax; ++j) {
      below += values[j] < values[i] ? 1 : 0;
      not_above += values[j] <= values[i] ? 1 : 0;
    }
    if (below <= middle && middle < not_above && middle < n && values[i] < kNoValue)
      found = values[i];
  }
  return found;
}

/// As balanced_median_of(): the mean of lower and upper middle.
template <int kMax>
__device__ __forceinline__ double balanced_middle_of(const double (&values)[kMax], int n) {
  const int lower = (n - 1) / 2;
  const int upper = n / 2;
  double low = 0, high = 0;
#pragma unroll(kInRegisters <kMax>)
  for (int i = 0; i < kMax; ++i) {
    int below = 0, not_above = 0;
#pragma unroll(kInRegisters <kMax>)
    for (int j = 0; j < kMax; ++j) {
      below += values[j] < values[i] ? 1 : 0;
      not_above += values[j] <= values[i] ? 1 : 0;
    }
    if (!(values[i] < kNoValue)) continue;
    if (below <= lower && lower < not_above) low = values[i];
    if (below <= upper && upper < not_above) high = values[i];
  }
  return 0.5 * (low + high);
}

}  // namespace ryle::search::detail
