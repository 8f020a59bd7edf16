// SPDX-License-Identifier: BSD-3-Clause
// Vectors of kLanes floats. Included once per instruction-set file, inside an unnamed namespace.
// The files are compiled with -ffp-contract=fast: a multiply and an add become one rounding,
// nothing is reassociated.

using V = float __attribute__((vector_size(4 * kLanes)));
using I = std::int32_t __attribute__((vector_size(4 * kLanes)));
using Byte = std::int8_t __attribute__((vector_size(kLanes)));

#define RYLE_ALWAYS __attribute__((always_inline))
#define RYLE_INLINE inline RYLE_ALWAYS

RYLE_INLINE V load(const float* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
RYLE_INLINE void store(float* p, V v) { __builtin_memcpy(p, &v, sizeof v); }
RYLE_INLINE V broadcast(float x) { return x - V{}; }

/// One complex value per lane.
struct C {
  V re;
  V im;
};
RYLE_INLINE C operator+(C a, C b) { return {a.re + b.re, a.im + b.im}; }
RYLE_INLINE C operator-(C a, C b) { return {a.re - b.re, a.im - b.im}; }
RYLE_INLINE C plus_i(C a) { return {-a.im, a.re}; }
RYLE_INLINE C times(C a, float wr, float wi) {
  return {a.re * wr - a.im * wi, a.re * wi + a.im * wr};
}
RYLE_INLINE C times(C a, const float* w) { return times(a, w[0], w[1]); }
inline constexpr std::int64_t kPoint = 2 * kLanes;  // floats per point
RYLE_INLINE C load_point(const float* p) { return {load(p), load(p + kLanes)}; }
RYLE_INLINE void store_point(float* p, C a) {
  store(p, a.re);
  store(p + kLanes, a.im);
}

template <int Begin, int End, class Body>
RYLE_INLINE void static_for(const Body& body) {
  if constexpr (Begin < End) {
    body(std::integral_constant<int, Begin>{});
    static_for<Begin + 1, End>(body);
  }
}

// --- sums over lanes of kLanes vectors at once: result lane i = sum of the lanes of vector i ---
template <int W, int... Lane>
RYLE_INLINE V fold(V a, V b, std::integer_sequence<int, Lane...>) {
  // Blocks of W lanes: the even ones from a, the odd ones from b, plus their neighbours.
  const V own = __builtin_shufflevector(a, b, ((Lane / W) % 2 == 0 ? Lane : Lane + kLanes)...);
  const V other =
      __builtin_shufflevector(a, b, ((Lane / W) % 2 == 0 ? Lane + W : Lane - W + kLanes)...);
  return own + other;
}
struct Two {
  V a;
  V b;
};
/// leaf(i) gives two vectors of pixel i; natural order of the result because the first fold, over
/// half a vector, joins pixels half a vector apart.
template <int Width, int Base, class Leaf>
RYLE_INLINE Two sum_lanes(const Leaf& leaf) {
  if constexpr (Width == kLanes) {
    return leaf(std::integral_constant<int, Base>{});
  } else {
    const Two x = sum_lanes<Width * 2, Base>(leaf);
    const Two y = sum_lanes<Width * 2, Base + Width>(leaf);
    using Lanes = std::make_integer_sequence<int, kLanes>;
    return {fold<Width>(x.a, y.a, Lanes{}), fold<Width>(x.b, y.b, Lanes{})};
  }
}
