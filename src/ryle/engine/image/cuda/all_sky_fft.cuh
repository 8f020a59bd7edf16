// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/device/cuda/fft.cuh"

/// Transforms of a batch in shared memory by one thread block, fp32, sizes 2^a 3^b 5^c.
/// @eq X[k] = sum_j x[j] exp(+2 pi i j k / n), unscaled. Stockham stage of radix R after a product
/// d
///     of radices, b = butterfly, j = b mod d:
///     out[(b - j) R + j + q d] = sum_r in[b + r n/R] exp(2 pi i r (j/(d R) + q/R))
namespace ryle::image::detail {

inline constexpr int kFftThreads = 256;
inline constexpr int kFftStages = 8;

struct GridFft {
  int n = 0;
  int n_stages = 0;
  int radix[kFftStages] = {};
  unsigned inverse_butterflies[kFftStages] = {};  // floor(2^32 / d) + 1, 0 for d = 1
  unsigned inverse_stride[kFftStages] = {};
  const float2* roots = nullptr;  // [n] exp(2 pi i k / n)
};

#ifdef __CUDACC__

/// One spare element in 16, and one a row: strided accesses spread over the banks.
__host__ __device__ inline int fft_pitch(int n) { return n + n / 16 + 1; }
__device__ inline int fft_at(int transform, int i, int n) {
  return transform * fft_pitch(n) + i + (i >> 4);
}

using cuda::fast_divide;
using cuda::times;
using cuda::operator+;
using cuda::operator-;
using cuda::operator*;
__device__ inline float2 times_i(float2 a) { return cuda::quarter_turned<1>(a); }

template <int R>
__device__ void fft_stage(const GridFft& t, int stage, unsigned stride, int batch,
                          const float2* from, float2* to) {
  const unsigned butterflies = t.n / R;
  const unsigned root_step = butterflies / stride;
  for (unsigned k = threadIdx.x; k < batch * butterflies; k += kFftThreads) {
    const unsigned s = fast_divide(k, t.inverse_butterflies[stage]);
    const unsigned b = k - s * butterflies;
    const unsigned j = b - stride * fast_divide(b, t.inverse_stride[stage]);
    float2 v[R];
#pragma unroll
    for (int r = 0; r < R; ++r) v[r] = from[fft_at(s, b + r * butterflies, t.n)];
    if (stride > 1) {
#pragma unroll
      for (int r = 1; r < R; ++r) v[r] = times(v[r], __ldg(t.roots + j * root_step * r));
    }
    cuda::Butterfly<R, 1>::run(v);
    const unsigned first = (b - j) * R + j;
#pragma unroll
    for (int r = 0; r < R; ++r) to[fft_at(s, first + r * stride, t.n)] = v[r];
  }
}

/// Transforms `batch` rows that lie in `from`; both buffers are overwritten. The result is where
/// the returned pointer says, visible to all threads.
__device__ inline float2* run_fft(const GridFft& t, int batch, float2* from, float2* to) {
  unsigned stride = 1;
  for (int stage = 0; stage < t.n_stages; ++stage) {
    __syncthreads();
    switch (t.radix[stage]) {
      case 2:
        fft_stage<2>(t, stage, stride, batch, from, to);
        break;
      case 3:
        fft_stage<3>(t, stage, stride, batch, from, to);
        break;
      case 4:
        fft_stage<4>(t, stage, stride, batch, from, to);
        break;
      case 5:
        fft_stage<5>(t, stage, stride, batch, from, to);
        break;
      default:
        fft_stage<8>(t, stage, stride, batch, from, to);
        break;
    }
    stride *= t.radix[stage];
    float2* const swap = from;
    from = to;
    to = swap;
  }
  __syncthreads();
  return from;
}

#endif  // __CUDACC__

}  // namespace ryle::image::detail
