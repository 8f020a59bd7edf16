// SPDX-License-Identifier: BSD-3-Clause
// Vectors of Real for ryle/simd/fft.inc.hpp: numbers side by side, no shuffles.

using simd::static_for;

using V __attribute__((vector_size(kVectorBytes))) = Real;
constexpr int kSign = 1;
constexpr bool kFirstIsPlain = false;

RYLE_INLINE V load(const Real* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
RYLE_INLINE void store(Real* p, V v) { __builtin_memcpy(p, &v, sizeof v); }
RYLE_INLINE V broadcast(Real x) { return x - V{}; }
RYLE_INLINE V fma(V a, V b, V c) { return a * b + c; }
RYLE_INLINE V fnma(V a, V b, V c) { return c - a * b; }
