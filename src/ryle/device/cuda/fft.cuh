// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

/// What the transforms of the engines share: complex numbers of fp32, transforms of a few points in
/// registers, divisions by constants of a plan.
namespace ryle::cuda {

/// floor(2^32 / d) + 1, 0 for d = 1: what fast_divide() multiplies by.
inline unsigned inverse_of(std::int64_t divisor) {
  return divisor == 1 ? 0u
                      : static_cast<unsigned>(
                            (std::uint64_t{1} << 32) / static_cast<std::uint64_t>(divisor) + 1);
}

#ifdef __CUDACC__

/// n / d; exact while n * d < 2^32, which holds for what shared memory can take.
__device__ inline unsigned fast_divide(unsigned n, unsigned inverse) {
  return inverse == 0 ? n : __umulhi(n, inverse);
}

__device__ inline float2 operator+(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ inline float2 operator-(float2 a, float2 b) { return {a.x - b.x, a.y - b.y}; }
__device__ inline float2 operator*(float s, float2 a) { return {s * a.x, s * a.y}; }
__device__ inline float2 times(float2 a, float2 b) {
  return {fmaf(a.x, b.x, -a.y * b.y), fmaf(a.x, b.y, a.y * b.x)};
}
/// kSign i a
template <int kSign>
__device__ inline float2 quarter_turned(float2 a) {
  if constexpr (kSign < 0) return {a.y, -a.x};
  return {-a.y, a.x};
}

/// @eq v[k] = sum_n v[n] exp(kSign 2 pi i n k / R), R = 2, 3, 4, 5, 7, 8
template <int R, int kSign>
struct Butterfly {
  static_assert(R == 3 || R == 5 || R == 7);
  /// Odd radix by pairs (q, R - q): sums carry the cosines, differences the sines.
  __device__ static void run(float2 (&v)[R]) {
    constexpr float kCos3[3] = {1.0f, -0.5f, -0.5f};
    constexpr float kSin3[3] = {0.0f, 0.86602540378443865f, -0.86602540378443865f};
    constexpr float kCos5[5] = {1.0f, 0.30901699437494742f, -0.80901699437494742f,
                                -0.80901699437494742f, 0.30901699437494742f};
    constexpr float kSin5[5] = {0.0f, 0.95105651629515357f, 0.58778525229247313f,
                                -0.58778525229247313f, -0.95105651629515357f};
    constexpr float kCos7[7] = {1.0f,
                                0.62348980185873353f,
                                -0.22252093395631440f,
                                -0.90096886790241913f,
                                -0.90096886790241913f,
                                -0.22252093395631440f,
                                0.62348980185873353f};
    constexpr float kSin7[7] = {0.0f,
                                0.78183148246802981f,
                                0.97492791218182361f,
                                0.43388373911755812f,
                                -0.43388373911755812f,
                                -0.97492791218182361f,
                                -0.78183148246802981f};
    const float* cosine = R == 3 ? kCos3 : R == 5 ? kCos5 : kCos7;
    const float* sine = R == 3 ? kSin3 : R == 5 ? kSin5 : kSin7;
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
      v[q] = even + quarter_turned<kSign>(odd);
      v[R - q] = even - quarter_turned<kSign>(odd);
    }
  }
};
template <int kSign>
struct Butterfly<2, kSign> {
  __device__ static void run(float2 (&v)[2]) {
    const float2 t = v[0] - v[1];
    v[0] = v[0] + v[1];
    v[1] = t;
  }
};
template <int kSign>
struct Butterfly<4, kSign> {
  __device__ static void run(float2 (&v)[4]) {
    const float2 a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3];
    const float2 d = quarter_turned<kSign>(v[1] - v[3]);
    v[0] = a + c;
    v[1] = b + d;
    v[2] = a - c;
    v[3] = b - d;
  }
};
template <int kSign>
struct Butterfly<8, kSign> {
  __device__ static void run(float2 (&v)[8]) {
    constexpr float kHalfRoot = 0.70710678118654752f;
    float2 even[4] = {v[0], v[2], v[4], v[6]};
    float2 odd[4] = {v[1], v[3], v[5], v[7]};
    Butterfly<4, kSign>::run(even);
    Butterfly<4, kSign>::run(odd);
    odd[2] = quarter_turned<kSign>(odd[2]);
    if constexpr (kSign < 0) {
      odd[1] = kHalfRoot * float2{odd[1].x + odd[1].y, odd[1].y - odd[1].x};
      odd[3] = kHalfRoot * float2{odd[3].y - odd[3].x, -odd[3].x - odd[3].y};
    } else {
      odd[1] = kHalfRoot * float2{odd[1].x - odd[1].y, odd[1].x + odd[1].y};
      odd[3] = kHalfRoot * float2{-odd[3].x - odd[3].y, odd[3].x - odd[3].y};
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      v[k] = even[k] + odd[k];
      v[k + 4] = even[k] - odd[k];
    }
  }
};

#endif  // __CUDACC__

}  // namespace ryle::cuda
