// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/device/cuda/kernel.cuh"
#include "ryle/engine/search/cuda/detect_work.hpp"
#include "ryle/engine/search/detect_unclip.hpp"

/// Private to the CUDA detector: median and clip of a trial by a warp, mean and rms from what lies
/// between the clips.
namespace ryle::search::detail {

inline constexpr int kSample = 512;  ///< values the median comes from
inline constexpr int kOwn = kSample / 32;
inline constexpr unsigned kAll = 0xffffffffu;

template <class T>
__device__ inline T warp_sum(T value) {
  for (int m = 16; m > 0; m /= 2) value += __shfl_xor_sync(kAll, value, m);
  return value;
}

/// Value of the given rank, bit by bit from the top: the largest v with at most `rank` below it.
/// Values are at least 0; those beyond the largest of interest never count.
__device__ inline int ranked(const int (&values)[kOwn], int rank, int bits) {
  int result = 0;
#pragma unroll 1
  for (int bit = bits - 1; bit >= 0; --bit) {
    const int test = result | 1 << bit;
    int less[2] = {};
#pragma unroll
    for (int k = 0; k < kOwn; ++k) less[k % 2] += values[k] < test;
    if (__reduce_add_sync(kAll, less[0] + less[1]) <= rank) result = test;
  }
  return result;
}
/// The same of values below 2^15, two in a word.
__device__ inline int ranked_pairs(const int (&values)[kOwn], int rank, int bits) {
  unsigned minus2[kOwn / 2];
#pragma unroll
  for (int k = 0; k < kOwn / 2; ++k)
    minus2[k] = (static_cast<unsigned>(-min(values[2 * k], 0x7fff)) & 0xffffu) |
                static_cast<unsigned>(-min(values[2 * k + 1], 0x7fff)) << 16;
  int result = 0;
#pragma unroll 1
  for (int bit = bits - 1; bit >= 0; --bit) {
    const int test = result | 1 << bit;
    const unsigned test2 = 0x10001u * static_cast<unsigned>(test);
    unsigned less2 = 0;
#pragma unroll
    for (int k = 0; k < kOwn / 2; ++k)  // 1 where value < test
      less2 += __viaddmin_s16x2_relu(minus2[k], test2, 0x10001u);
    if (__reduce_add_sync(kAll, static_cast<int>((less2 & 0xffffu) + (less2 >> 16))) <= rank)
      result = test;
  }
  return result;
}
__device__ inline int bits_of(int largest) { return 32 - __clz(largest); }

/// Center and clip of `n_sample` values, at(k) the k-th of them; by a warp. Sums stay below 2^31:
/// at most 2^20 channels of 255.
template <class At>
__device__ __forceinline__ void set_center(int n_sample, int lane, const At& at, TrialStart& t) {
  if (n_sample < 16) return;
  constexpr int kNone = 0x7fffffff;
  int values[kOwn], minimum = kNone, maximum = 0;
#pragma unroll
  for (int k = 0; k < kOwn; ++k) {
    const int i = lane + 32 * k;
    values[k] = i < n_sample ? at(i) : kNone;
    minimum = min(minimum, values[k]);
    if (i < n_sample) maximum = max(maximum, values[k]);
  }
  // Above the least: fewer bits to go through.
  minimum = __reduce_min_sync(kAll, minimum);
  maximum = __reduce_max_sync(kAll, maximum);
#pragma unroll
  for (int k = 0; k < kOwn; ++k) values[k] -= lane + 32 * k < n_sample ? minimum : 0;
  const auto value_of = [&](int largest) {
    const int bits = bits_of(largest);
    return bits <= 15 ? ranked_pairs(values, n_sample / 2, bits)
                      : ranked(values, n_sample / 2, bits);
  };
  t.center = value_of(maximum - minimum) + minimum;
  const int farthest = max(maximum - t.center, t.center - minimum);
#pragma unroll
  for (int k = 0; k < kOwn; ++k)
    if (lane + 32 * k < n_sample) values[k] = abs(values[k] + minimum - t.center);
  const int mad = value_of(farthest);
  // As clip_of().
  const double clip = ceil(product(3 * 1.4826, static_cast<double>(mad)));
  t.clip = mad > 0 ? static_cast<int>(fmin(clip, 2147483647.0)) : farthest;
}

__device__ inline SeriesStatistics statistics_of(const TrialStart& t, const TrialMoments& m) {
  SeriesStatistics s;
  if (m.n >= 16) {
    const Unclipped u = unclipped_of(static_cast<double>(m.n), static_cast<double>(m.sum),
                                     static_cast<double>(m.squares), static_cast<double>(t.clip));
    s.mu = static_cast<double>(t.center) + u.mean;
    s.sigma = u.sigma;
  }
  if (t.n_columns > 0) s.sigma /= sqrt(t.weight / static_cast<double>(t.n_columns));
  return s;
}

}  // namespace ryle::search::detail
