// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/device/cuda/fft.cuh"
#include "ryle/engine/channelize/cuda/kernels.cuh"

/// Mixed-radix Stockham transform of a group of spectra by one thread block, fp32.
/// @eq stage with stride d (product of the radices before), radix R, n points, b = butterfly, j = b
/// mod d:
///     out[(b - j) R + j + q d] = sum_r in[b + r n/R] exp(-2 pi i r (j/(d R) + q/R))
namespace ryle::channelize::detail {

using cuda::fast_divide;
using cuda::times;
using cuda::operator+;
using cuda::operator-;

/// Where element i of spectrum s lies. In shared memory one extra element in 16 spreads strided
/// accesses over the banks.
struct SharedLayout {
  static constexpr bool kShared = true;
  __device__ static int at(int s, int i, int n_points) {
    return s * (n_points + n_points / 16 + 1) + i + (i >> 4);
  }
};
struct GlobalLayout {
  static constexpr bool kShared = false;
  __device__ static long long at(int s, int i, int n_points) {
    return static_cast<long long>(s) * n_points + i;
  }
};

template <int R, class From, class To>
__device__ void radix_stage(const CudaTransform& t, int stage, unsigned stride, int group,
                            const float2* from, float2* to) {
  const unsigned butterflies = t.n_points / R;
  const unsigned root_step = butterflies / stride;
  for (unsigned k = threadIdx.x; k < group * butterflies; k += kThreads) {
    const unsigned s =
        From::kShared ? fast_divide(k, t.inverse_butterflies[stage]) : k / butterflies;
    const unsigned b = k - s * butterflies;
    const unsigned j =
        b - stride * (From::kShared ? fast_divide(b, t.inverse_stride[stage]) : b / stride);
    float2 v[R];
#pragma unroll
    for (int r = 0; r < R; ++r) v[r] = from[From::at(s, b + r * butterflies, t.n_points)];
    if (stride > 1) {
      const float2 w = t.roots[j * root_step];
      float2 power = w;
#pragma unroll
      for (int r = 1; r < R; ++r) {
        v[r] = times(v[r], power);
        if (r + 1 < R) power = times(power, w);
      }
    }
    cuda::Butterfly<R, -1>::run(v);
    const unsigned first = (b - j) * R + j;
#pragma unroll
    for (int r = 0; r < R; ++r) to[To::at(s, first + r * stride, t.n_points)] = v[r];
  }
}

/// Any radix straight from the equation, one output a thread: for sizes with a larger prime factor.
template <class From, class To>
__device__ void any_stage(const CudaTransform& t, int stage, unsigned stride, int group,
                          const float2* from, float2* to) {
  const unsigned radix = t.radix[stage];
  const unsigned n = t.n_points;
  const unsigned butterflies = n / radix;
  const unsigned root_step = butterflies / stride;
  for (unsigned k = threadIdx.x; k < group * n; k += kThreads) {
    const unsigned s = k / n;
    const unsigned q = k % n / butterflies;
    const unsigned b = k % butterflies;
    const unsigned j = b % stride;
    const unsigned turn = j * root_step + q * butterflies;  // below n + n
    float2 sum = {0, 0};
    unsigned root = 0;
    for (unsigned r = 0; r < radix; ++r) {
      const float2 term = times(from[From::at(s, b + r * butterflies, n)], t.roots[root]);
      sum = sum + term;
      root += turn;
      while (root >= n) root -= n;
    }
    to[To::at(s, (b - j) * radix + j + q * stride, n)] = sum;
  }
}

template <class From, class To>
__device__ void run_stage(const CudaTransform& t, int stage, unsigned stride, int group,
                          const float2* from, float2* to) {
  switch (t.radix[stage]) {
    case 2:
      return radix_stage<2, From, To>(t, stage, stride, group, from, to);
    case 3:
      return radix_stage<3, From, To>(t, stage, stride, group, from, to);
    case 4:
      return radix_stage<4, From, To>(t, stage, stride, group, from, to);
    case 5:
      return radix_stage<5, From, To>(t, stage, stride, group, from, to);
    case 7:
      return radix_stage<7, From, To>(t, stage, stride, group, from, to);
    case 8:
      return radix_stage<8, From, To>(t, stage, stride, group, from, to);
    default:
      return any_stage<From, To>(t, stage, stride, group, from, to);
  }
}

}  // namespace ryle::channelize::detail
