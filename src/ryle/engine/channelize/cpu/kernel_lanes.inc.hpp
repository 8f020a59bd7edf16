// SPDX-License-Identifier: BSD-3-Clause
// What the instruction sets do differently on vectors of kLanes floats. Included once per
// instruction-set file, inside an unnamed namespace, after ryle/simd/vector.inc.hpp.
// Multiply-adds are explicit (the files are compiled with -ffp-contract=off): a spectrum gets the
// same bits on every code path, wherever a gulp is cut.

using U = std::uint32_t __attribute__((vector_size(4 * kLanes)));
using Half = std::uint16_t __attribute__((vector_size(2 * kLanes)));
using Byte = std::int8_t __attribute__((vector_size(kLanes)));

// The same instructions in an order that suits the large cores that have 512 bits: a fifth faster
// butterflies with GCC 12. (Not everywhere: it slows the finish.)
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#define RYLE_TUNED __attribute__((noinline, target("tune=icelake-server")))
#else
#define RYLE_TUNED __attribute__((noinline))
#endif

#if defined(__AVX512F__)
RYLE_INLINE V fma(V a, V b, V c) { return (V)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
RYLE_INLINE V fnma(V a, V b, V c) { return (V)_mm512_fnmadd_ps((__m512)a, (__m512)b, (__m512)c); }
RYLE_INLINE I round_to_int(V a) { return (I)_mm512_cvtps_epi32((__m512)a); }
RYLE_INLINE U widen(const std::byte* p) {
  return (U)_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
RYLE_INLINE I widen_signed(const std::byte* p) {
  return (I)_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
RYLE_INLINE V minimum(V a, V b) { return (V)_mm512_min_ps((__m512)a, (__m512)b); }
RYLE_INLINE V maximum(V a, V b) { return (V)_mm512_max_ps((__m512)a, (__m512)b); }
RYLE_INLINE bool any_differs(V a, V b, V c, V d) {
  return (_mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_NEQ_UQ) |
          _mm512_cmp_ps_mask((__m512)c, (__m512)d, _CMP_NEQ_UQ)) != 0;
}
RYLE_INLINE Byte narrow(I a) { return (Byte)_mm512_cvtepi32_epi8((__m512i)a); }
RYLE_INLINE Half to_half(V a) {
  return (Half)_mm512_cvtps_ph((__m512)a, _MM_FROUND_TO_NEAREST_INT);
}
#elif defined(__AVX2__)
RYLE_INLINE V fma(V a, V b, V c) { return (V)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
RYLE_INLINE V fnma(V a, V b, V c) { return (V)_mm256_fnmadd_ps((__m256)a, (__m256)b, (__m256)c); }
RYLE_INLINE I round_to_int(V a) { return (I)_mm256_cvtps_epi32((__m256)a); }
RYLE_INLINE U widen(const std::byte* p) {
  return (U)_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
RYLE_INLINE I widen_signed(const std::byte* p) {
  return (I)_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
RYLE_INLINE V minimum(V a, V b) { return (V)_mm256_min_ps((__m256)a, (__m256)b); }
RYLE_INLINE V maximum(V a, V b) { return (V)_mm256_max_ps((__m256)a, (__m256)b); }
RYLE_INLINE bool any_differs(V a, V b, V c, V d) {
  const __m256 x = _mm256_cmp_ps((__m256)a, (__m256)b, _CMP_NEQ_UQ);
  const __m256 y = _mm256_cmp_ps((__m256)c, (__m256)d, _CMP_NEQ_UQ);
  return _mm256_movemask_ps(_mm256_or_ps(x, y)) != 0;
}
RYLE_INLINE Byte narrow(I a) {
  const __m256i v = (__m256i)a;
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  const __m128i bytes = _mm_packs_epi16(words, words);
  Byte b;
  __builtin_memcpy(&b, &bytes, sizeof b);
  return b;
}
RYLE_INLINE Half to_half(V a) {
  return (Half)_mm256_cvtps_ph((__m256)a, _MM_FROUND_TO_NEAREST_INT);
}
#else
RYLE_INLINE U widen(const std::byte* p) {
  Half pairs;
  __builtin_memcpy(&pairs, p, sizeof pairs);
  return __builtin_convertvector(pairs, U);
}
RYLE_INLINE I widen_signed(const std::byte* p) {
  Byte codes;
  __builtin_memcpy(&codes, p, sizeof codes);
  return __builtin_convertvector(codes, I);
}
RYLE_INLINE V fma(V a, V b, V c) { return a * b + c; }
RYLE_INLINE V fnma(V a, V b, V c) { return c - a * b; }
RYLE_INLINE V minimum(V a, V b) { return a < b ? a : b; }
RYLE_INLINE V maximum(V a, V b) { return a > b ? a : b; }
#if defined(__SSE2__)
RYLE_INLINE I round_to_int(V a) { return (I)_mm_cvtps_epi32((__m128)a); }
#else
RYLE_INLINE I round_to_int(V a) {
  // As the x86 instruction: ties to even, the least integer for what does not fit.
  I n;
  for (int l = 0; l < kLanes; ++l)
    n[l] = a[l] >= -0x1p31f && a[l] < 0x1p31f
               ? static_cast<std::int32_t>(__builtin_nearbyintf(a[l]))
               : INT32_MIN;
  return n;
}
#endif
RYLE_INLINE bool any_differs(V a, V b, V c, V d) {
  const I x = (I)(a != b) | (I)(c != d);
  return (x[0] | x[1] | x[2] | x[3]) != 0;
}
RYLE_INLINE Byte narrow(I a) { return __builtin_convertvector(a, Byte); }
RYLE_INLINE std::uint16_t half_of(float value) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &value, 4);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;
  if (magnitude < 0x38800000u) {
    float scaled;
    __builtin_memcpy(&scaled, &magnitude, 4);
    scaled = scaled * 0x1p24f + 0x1p23f;  // the sum rounds to an integer
    std::uint32_t rounded;
    __builtin_memcpy(&rounded, &scaled, 4);
    return sign | static_cast<std::uint16_t>(rounded & 0x7fffffu);
  }
  return sign | static_cast<std::uint16_t>(
                    (magnitude + 0x0fffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13);
}
RYLE_INLINE Half to_half(V a) {
  Half h;
  for (int i = 0; i < kLanes; ++i) h[i] = half_of(a[i]);
  return h;
}
#endif

// Of the transform in ryle/simd/fft.inc.hpp.
using Real = float;
constexpr int kSign = -1;
constexpr bool kFirstIsPlain = true;
