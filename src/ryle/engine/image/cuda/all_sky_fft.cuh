// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_runtime_api.h>

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

__device__ inline float2 operator+(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ inline float2 operator-(float2 a, float2 b) { return {a.x - b.x, a.y - b.y}; }
__device__ inline float2 operator*(float s, float2 a) { return {s * a.x, s * a.y}; }
__device__ inline float2 times(float2 a, float2 b) {
  return {fmaf(a.x, b.x, -a.y * b.y), fmaf(a.x, b.y, a.y * b.x)};
}
__device__ inline float2 times_i(float2 a) { return {-a.y, a.x}; }

template <int R>
struct Butterfly;
template <>
struct Butterfly<2> {
  __device__ static void run(float2 (&v)[2]) {
    const float2 t = v[0] - v[1];
    v[0] = v[0] + v[1];
    v[1] = t;
  }
};
template <>
struct Butterfly<4> {
  __device__ static void run(float2 (&v)[4]) {
    const float2 a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = times_i(v[1] - v[3]);
    v[0] = a + c;
    v[1] = b + d;
    v[2] = a - c;
    v[3] = b - d;
  }
};
template <>
struct Butterfly<8> {
  __device__ static void run(float2 (&v)[8]) {
    constexpr float kHalfRoot = 0.70710678118654752f;
    float2 even[4] = {v[0], v[2], v[4], v[6]};
    float2 odd[4] = {v[1], v[3], v[5], v[7]};
    Butterfly<4>::run(even);
    Butterfly<4>::run(odd);
    odd[1] = kHalfRoot * float2{odd[1].x - odd[1].y, odd[1].x + odd[1].y};
    odd[2] = times_i(odd[2]);
    odd[3] = kHalfRoot * float2{-odd[3].x - odd[3].y, odd[3].x - odd[3].y};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      v[k] = even[k] + odd[k];
      v[k + 4] = even[k] - odd[k];
    }
  }
};
template <>
struct Butterfly<16> {
  __device__ static void run(float2 (&v)[16]) {
    constexpr float kCos[8] = {
        1.0f, 0.92387953251128674f,  0.70710678118654752f,  0.38268343236508977f,
        0.0f, -0.38268343236508977f, -0.70710678118654752f, -0.92387953251128674f};
    constexpr float kSin[8] = {
        0.0f, 0.38268343236508977f, 0.70710678118654752f, 0.92387953251128674f,
        1.0f, 0.92387953251128674f, 0.70710678118654752f, 0.38268343236508977f};
    float2 even[8], odd[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      even[k] = v[2 * k];
      odd[k] = v[2 * k + 1];
    }
    Butterfly<8>::run(even);
    Butterfly<8>::run(odd);
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const float2 turned = k == 0   ? odd[0]
                            : k == 4 ? times_i(odd[4])
                                     : times(odd[k], float2{kCos[k], kSin[k]});
      v[k] = even[k] + turned;
      v[k + 8] = even[k] - turned;
    }
  }
};
// Odd radix by pairs (q, R - q): sums carry the cosines, differences the sines.
template <int R>
__device__ inline void odd_butterfly(float2 (&v)[R], const float (&cosine)[R],
                                     const float (&sine)[R]) {
  constexpr int kHalf = (R - 1) / 2;
  float2 sum[kHalf], difference[kHalf];
  const float2 first = v[0];
#pragma unroll
  for (int r = 1; r <= kHalf; ++r) {
    sum[r - 1] = v[r] + v[R - r];
    difference[r - 1] = v[r] - v[R - r];
    v[0] = v[0] + sum[r - 1];
  }
#pragma unroll
  for (int q = 1; q <= kHalf; ++q) {
    float2 even = first;
    float2 odd = {0, 0};
#pragma unroll
    for (int r = 1; r <= kHalf; ++r) {
      even = even + cosine[q * r % R] * sum[r - 1];
      odd = odd + sine[q * r % R] * difference[r - 1];
    }
    v[q] = even + times_i(odd);
    v[R - q] = even - times_i(odd);
  }
}
template <>
struct Butterfly<3> {
  __device__ static void run(float2 (&v)[3]) {
    constexpr float kCos[3] = {1.0f, -0.5f, -0.5f};
    constexpr float kSin[3] = {0.0f, 0.86602540378443865f, -0.86602540378443865f};
    odd_butterfly<3>(v, kCos, kSin);
  }
};
template <>
struct Butterfly<5> {
  __device__ static void run(float2 (&v)[5]) {
    constexpr float kCos[5] = {1.0f, 0.30901699437494742f, -0.80901699437494742f,
                               -0.80901699437494742f, 0.30901699437494742f};
    constexpr float kSin[5] = {0.0f, 0.95105651629515357f, 0.58778525229247313f,
                               -0.58778525229247313f, -0.95105651629515357f};
    odd_butterfly<5>(v, kCos, kSin);
  }
};

// n / d; exact while n * d < 2^32, which holds for what shared memory can take.
__device__ inline unsigned fast_divide(unsigned n, unsigned inverse) {
  return inverse == 0 ? n : __umulhi(n, inverse);
}

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
    Butterfly<R>::run(v);
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
