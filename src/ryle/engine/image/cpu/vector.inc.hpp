// SPDX-License-Identifier: BSD-3-Clause
// Sums over the lanes of vectors. Included once per instruction-set file, inside an unnamed
// namespace, after ryle/simd/vector.inc.hpp.
// The files are compiled with -ffp-contract=fast: a multiply and an add become one rounding,
// nothing is reassociated.

using Byte = std::int8_t __attribute__((vector_size(kLanes)));

// The multiply-adds of ryle/simd/fft.inc.hpp, joined by the compiler.
using Real = float;
constexpr int kSign = 1;
constexpr bool kFirstIsPlain = false;
RYLE_INLINE V fma(V a, V b, V c) { return a * b + c; }
RYLE_INLINE V fnma(V a, V b, V c) { return c - a * b; }

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
