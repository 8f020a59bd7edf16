// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Transforms of 2 to 32 points in registers, for the fused kernel: decimation in time, a butterfly
/// of radix 2 with its root is six multiply-adds (the difference is 2 a - (a + w b)).
/// @eq v[k] = sum_n v[n] exp(-2 pi i n k / R)
namespace ryle::channelize::detail {

/// cos(2 pi k / 32).
__device__ constexpr float cosine_32(int k) {
  constexpr float kQuarter[9] = {1.0f,
                                 0.98078528040323043f,
                                 0.92387953251128674f,
                                 0.83146961230254524f,
                                 0.70710678118654752f,
                                 0.55557023301960218f,
                                 0.38268343236508977f,
                                 0.19509032201612825f,
                                 0.0f};
  k &= 31;
  if (k > 16) k = 32 - k;
  return k <= 8 ? kQuarter[k] : -kQuarter[16 - k];
}
__device__ constexpr float sine_32(int k) { return cosine_32(k - 8); }

template <int R>
struct Fourier {
  __device__ __forceinline__ static void run(float2 (&v)[R]) {
    float2 a[R / 2], b[R / 2];
#pragma unroll
    for (int k = 0; k < R / 2; ++k) {
      a[k] = v[2 * k];
      b[k] = v[2 * k + 1];
    }
    Fourier<R / 2>::run(a);
    Fourier<R / 2>::run(b);
#pragma unroll
    for (int k = 0; k < R / 2; ++k) combine(a[k], b[k], k * (32 / R), v[k], v[k + R / 2]);
  }

 private:
  // sum and difference of a and b exp(-2 pi i turn / 32); turn is a constant of the unrolled loop.
  __device__ __forceinline__ static void combine(float2 a, float2 b, int turn, float2& sum,
                                                 float2& difference) {
    constexpr float kHalfRoot = 0.70710678118654752f;
    if (turn == 0) {
      sum = {a.x + b.x, a.y + b.y};
      difference = {a.x - b.x, a.y - b.y};
    } else if (turn == 8) {
      sum = {a.x + b.y, a.y - b.x};
      difference = {a.x - b.y, a.y + b.x};
    } else if (turn == 4) {
      const float2 t = {b.x + b.y, b.y - b.x};
      sum = {fmaf(kHalfRoot, t.x, a.x), fmaf(kHalfRoot, t.y, a.y)};
      difference = {fmaf(-kHalfRoot, t.x, a.x), fmaf(-kHalfRoot, t.y, a.y)};
    } else if (turn == 12) {
      const float2 t = {b.y - b.x, b.x + b.y};
      sum = {fmaf(kHalfRoot, t.x, a.x), fmaf(-kHalfRoot, t.y, a.y)};
      difference = {fmaf(-kHalfRoot, t.x, a.x), fmaf(kHalfRoot, t.y, a.y)};
    } else {
      const float c = cosine_32(turn);
      const float s = sine_32(turn);
      sum = {fmaf(s, b.y, fmaf(c, b.x, a.x)), fmaf(-s, b.x, fmaf(c, b.y, a.y))};
      difference = {fmaf(2.0f, a.x, -sum.x), fmaf(2.0f, a.y, -sum.y)};
    }
  }
};
template <>
struct Fourier<1> {
  __device__ __forceinline__ static void run(float2 (&)[1]) {}
};

}  // namespace ryle::channelize::detail
