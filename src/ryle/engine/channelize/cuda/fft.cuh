// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/engine/channelize/cuda/kernels.cuh"

/// Mixed-radix Stockham transform of a group of spectra by one thread block, fp32.
/// @eq stage with stride d (product of the radices before), radix R, n points, b = butterfly, j = b
/// mod d:
///     out[(b - j) R + j + q d] = sum_r in[b + r n/R] exp(-2 pi i r (j/(d R) + q/R))
namespace ryle::channelize::detail {

__device__ inline float2 operator+(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ inline float2 operator-(float2 a, float2 b) { return {a.x - b.x, a.y - b.y}; }
__device__ inline float2 operator*(float s, float2 a) { return {s * a.x, s * a.y}; }
__device__ inline float2 multiply(float2 a, float2 b) {
  return {fmaf(a.x, b.x, -a.y * b.y), fmaf(a.x, b.y, a.y * b.x)};
}
__device__ inline float2 times_minus_i(float2 a) { return {a.y, -a.x}; }

template <int R>
struct Dft;
template <>
struct Dft<2> {
  __device__ static void run(float2 (&v)[2]) {
    const float2 t = v[0] - v[1];
    v[0] = v[0] + v[1];
    v[1] = t;
  }
};
template <>
struct Dft<4> {
  __device__ static void run(float2 (&v)[4]) {
    const float2 a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = times_minus_i(v[1] - v[3]);
    v[0] = a + c;
    v[1] = b + d;
    v[2] = a - c;
    v[3] = b - d;
  }
};
template <>
struct Dft<8> {
  __device__ static void run(float2 (&v)[8]) {
    constexpr float kHalfRoot = 0.70710678118654752f;
    float2 even[4] = {v[0], v[2], v[4], v[6]};
    float2 odd[4] = {v[1], v[3], v[5], v[7]};
    Dft<4>::run(even);
    Dft<4>::run(odd);
    odd[1] = kHalfRoot * float2{odd[1].x + odd[1].y, odd[1].y - odd[1].x};
    odd[2] = times_minus_i(odd[2]);
    odd[3] = kHalfRoot * float2{odd[3].y - odd[3].x, -odd[3].x - odd[3].y};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      v[k] = even[k] + odd[k];
      v[k + 4] = even[k] - odd[k];
    }
  }
};
// Odd radix by pairs (q, R-q): sums carry the cosines, differences the sines.
template <int R>
__device__ inline void odd_dft(float2 (&v)[R], const float (&cosine)[R], const float (&sine)[R]) {
  constexpr int kHalf = (R - 1) / 2;
  float2 sum[kHalf], difference[kHalf];
  float2 zero = v[0];
#pragma unroll
  for (int r = 1; r <= kHalf; ++r) {
    sum[r - 1] = v[r] + v[R - r];
    difference[r - 1] = v[r] - v[R - r];
    zero = zero + sum[r - 1];
  }
#pragma unroll
  for (int q = 1; q <= kHalf; ++q) {
    float2 even = v[0];
    float2 odd = {0, 0};
#pragma unroll
    for (int r = 1; r <= kHalf; ++r) {
      even = even + cosine[q * r % R] * sum[r - 1];
      odd = odd + sine[q * r % R] * difference[r - 1];
    }
    v[q] = even + times_minus_i(odd);
    v[R - q] = even - times_minus_i(odd);
    // v[q] and v[R - q] are not read again: sums and differences hold what is left.
  }
  v[0] = zero;
}
template <>
struct Dft<3> {
  __device__ static void run(float2 (&v)[3]) {
    constexpr float kCos[3] = {1.0f, -0.5f, -0.5f};
    constexpr float kSin[3] = {0.0f, 0.86602540378443865f, -0.86602540378443865f};
    odd_dft<3>(v, kCos, kSin);
  }
};
template <>
struct Dft<5> {
  __device__ static void run(float2 (&v)[5]) {
    constexpr float kCos[5] = {1.0f, 0.30901699437494742f, -0.80901699437494742f,
                               -0.80901699437494742f, 0.30901699437494742f};
    constexpr float kSin[5] = {0.0f, 0.95105651629515357f, 0.58778525229247313f,
                               -0.58778525229247313f, -0.95105651629515357f};
    odd_dft<5>(v, kCos, kSin);
  }
};
template <>
struct Dft<7> {
  __device__ static void run(float2 (&v)[7]) {
    constexpr float kCos[7] = {1.0f,
                               0.62348980185873353f,
                               -0.22252093395631440f,
                               -0.90096886790241913f,
                               -0.90096886790241913f,
                               -0.22252093395631440f,
                               0.62348980185873353f};
    constexpr float kSin[7] = {0.0f,
                               0.78183148246802981f,
                               0.97492791218182361f,
                               0.43388373911755812f,
                               -0.43388373911755812f,
                               -0.97492791218182361f,
                               -0.78183148246802981f};
    odd_dft<7>(v, kCos, kSin);
  }
};

// n / d by multiplication; exact while n * d < 2^32, which holds for transforms in shared memory.
__device__ inline unsigned divide(unsigned n, unsigned inverse) {
  return inverse == 0 ? n : __umulhi(n, inverse);
}

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
    const unsigned s = From::kShared ? divide(k, t.inverse_butterflies[stage]) : k / butterflies;
    const unsigned b = k - s * butterflies;
    const unsigned j =
        b - stride * (From::kShared ? divide(b, t.inverse_stride[stage]) : b / stride);
    float2 v[R];
#pragma unroll
    for (int r = 0; r < R; ++r) v[r] = from[From::at(s, b + r * butterflies, t.n_points)];
    if (stride > 1) {
      const float2 w = t.roots[j * root_step];
      float2 power = w;
#pragma unroll
      for (int r = 1; r < R; ++r) {
        v[r] = multiply(v[r], power);
        if (r + 1 < R) power = multiply(power, w);
      }
    }
    Dft<R>::run(v);
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
      const float2 term = multiply(from[From::at(s, b + r * butterflies, n)], t.roots[root]);
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
