// SPDX-License-Identifier: BSD-3-Clause
// What the instruction sets do differently: lanes picked by a mask. Included once per
// instruction-set file, inside an unnamed namespace, after ryle/simd/vector.inc.hpp.

using VecF = V;
using VecD = VD;
template <class Real>
using Vec = std::conditional_t<sizeof(Real) == 4, VecF, VecD>;
template <class Real>
constexpr int kLanesOf = kVectorBytes / static_cast<int>(sizeof(Real));

/// Short sums of one vector go into double.
RYLE_INLINE void add_wide(VecD (&to)[2], VecF v) {
  using Half = float __attribute__((vector_size(kVectorBytes / 2)));
  Half half[2];
  __builtin_memcpy(half, &v, sizeof v);
  to[0] += __builtin_convertvector(half[0], VecD);
  to[1] += __builtin_convertvector(half[1], VecD);
}
RYLE_INLINE void add_wide(VecD (&to)[2], VecD v) { to[0] += v; }
RYLE_INLINE double total(const VecD (&v)[2]) {
  const VecD both = v[0] + v[1];
  double sum = 0;
  for (int l = 0; l < kLanesOf<double>; ++l) sum += both[l];
  return sum;
}

#ifdef __AVX512F__

/// Lanes where a < b, where a <= b.
RYLE_INLINE unsigned less(VecF a, VecF b) {
  return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ);
}
RYLE_INLINE unsigned less(VecD a, VecD b) {
  return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LT_OQ);
}
RYLE_INLINE unsigned at_most(VecD a, VecD b) {
  return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LE_OQ);
}
/// Elements of `from` that `rows` names, 0 from the `n`th on. Rows are below 2^31.
RYLE_INLINE VecF gather(const float* from, const std::uint32_t* rows, int n) {
  const auto here = static_cast<__mmask16>(n >= 16 ? 0xffffU : (1U << n) - 1);
  return (VecF)_mm512_mask_i32gather_ps(_mm512_setzero_ps(), here,
                                        _mm512_maskz_loadu_epi32(here, rows), from, 4);
}
RYLE_INLINE VecF load_some(const float* from, int n) {
  return (VecF)_mm512_maskz_loadu_ps(static_cast<__mmask16>(n >= 16 ? 0xffffU : (1U << n) - 1),
                                     from);
}
/// Rows become columns.
RYLE_INLINE void turn(VecF (&r)[16]) {
  __m512 a[16], b[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_ps((__m512)r[i], (__m512)r[i + 1]);
    a[i + 1] = _mm512_unpackhi_ps((__m512)r[i], (__m512)r[i + 1]);
  }
  const auto low = [](__m512 x, __m512 y) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
  };
  const auto high = [](__m512 x, __m512 y) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
  };
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    b[i] = low(a[i], a[i + 2]);
    b[i + 1] = high(a[i], a[i + 2]);
    b[i + 2] = low(a[i + 1], a[i + 3]);
    b[i + 3] = high(a[i + 1], a[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512 even0 = _mm512_shuffle_f32x4(b[i], b[4 + i], 0x88);
    const __m512 odd0 = _mm512_shuffle_f32x4(b[i], b[4 + i], 0xdd);
    const __m512 even1 = _mm512_shuffle_f32x4(b[8 + i], b[12 + i], 0x88);
    const __m512 odd1 = _mm512_shuffle_f32x4(b[8 + i], b[12 + i], 0xdd);
    r[i] = (VecF)_mm512_shuffle_f32x4(even0, even1, 0x88);
    r[4 + i] = (VecF)_mm512_shuffle_f32x4(odd0, odd1, 0x88);
    r[8 + i] = (VecF)_mm512_shuffle_f32x4(even0, even1, 0xdd);
    r[12 + i] = (VecF)_mm512_shuffle_f32x4(odd0, odd1, 0xdd);
  }
}

/// Lanes of `bits` to the front of `out`; a whole vector is written.
template <class Real>
RYLE_INLINE void compress(Real* out, unsigned bits, Vec<Real> v) {
  if constexpr (sizeof(Real) == 4)
    _mm512_storeu_ps(out, _mm512_maskz_compress_ps(static_cast<__mmask16>(bits), (__m512)v));
  else
    _mm512_storeu_pd(out, _mm512_maskz_compress_pd(static_cast<__mmask8>(bits), (__m512d)v));
}
template <class Real>
RYLE_INLINE void compress_rows(std::uint32_t* out, unsigned bits, const std::uint32_t* rows) {
  if constexpr (sizeof(Real) == 4)
    _mm512_storeu_si512(
        out, _mm512_maskz_compress_epi32(static_cast<__mmask16>(bits), _mm512_loadu_si512(rows)));
  else
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(out),
        _mm256_maskz_compress_epi32(static_cast<__mmask8>(bits),
                                    _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows))));
}
template <class Real>
RYLE_INLINE Vec<Real> keep_or_minus_one(unsigned bits, Vec<Real> v) {
  if constexpr (sizeof(Real) == 4)
    return (Vec<Real>)_mm512_mask_blend_ps(static_cast<__mmask16>(bits), _mm512_set1_ps(-1),
                                           (__m512)v);
  else
    return (Vec<Real>)_mm512_mask_blend_pd(static_cast<__mmask8>(bits), _mm512_set1_pd(-1),
                                           (__m512d)v);
}

#else

RYLE_INLINE VecF gather(const float* from, const std::uint32_t* rows, int n) {
  VecF v{};
  for (int l = 0; l < n; ++l) v[l] = from[rows[l]];
  return v;
}
RYLE_INLINE VecF load_some(const float* from, int n) {
  if (n == kLanesOf<float>) return load(from);
  VecF v{};
  for (int l = 0; l < n; ++l) v[l] = from[l];
  return v;
}
RYLE_INLINE void turn(VecF (&r)[kLanesOf<float>]) {
#ifdef __AVX2__
  __m256 a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_ps((__m256)r[i], (__m256)r[i + 1]);
    a[i + 1] = _mm256_unpackhi_ps((__m256)r[i], (__m256)r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xee);
    b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = (VecF)_mm256_permute2f128_ps(b[i], b[4 + i], 0x20);
    r[4 + i] = (VecF)_mm256_permute2f128_ps(b[i], b[4 + i], 0x31);
  }
#else
  for (int i = 0; i < kLanesOf<float>; ++i)
    for (int j = 0; j < i; ++j) {
      const float x = r[i][j];
      r[i][j] = r[j][i];
      r[j][i] = x;
    }
#endif
}

template <class Real, class Mask>
RYLE_INLINE unsigned lane_bits(Mask mask) {
#ifdef __AVX2__
  if constexpr (sizeof(Real) == 4)
    return static_cast<unsigned>(_mm256_movemask_ps((__m256)mask));
  else
    return static_cast<unsigned>(_mm256_movemask_pd((__m256d)mask));
#else
  unsigned bits = 0;
  for (int l = 0; l < kLanesOf<Real>; ++l) bits |= (mask[l] != 0 ? 1U : 0U) << l;
  return bits;
#endif
}
RYLE_INLINE unsigned less(VecF a, VecF b) { return lane_bits<float>(a < b); }
RYLE_INLINE unsigned less(VecD a, VecD b) { return lane_bits<double>(a < b); }
RYLE_INLINE unsigned at_most(VecD a, VecD b) { return lane_bits<double>(a <= b); }
template <class Real>
RYLE_INLINE void compress(Real* out, unsigned bits, Vec<Real> v) {
  for (; bits != 0; bits &= bits - 1) *out++ = v[__builtin_ctz(bits)];
}
template <class Real>
RYLE_INLINE void compress_rows(std::uint32_t* out, unsigned bits, const std::uint32_t* rows) {
  for (; bits != 0; bits &= bits - 1) *out++ = rows[__builtin_ctz(bits)];
}
template <class Real>
RYLE_INLINE Vec<Real> keep_or_minus_one(unsigned bits, Vec<Real> v) {
  for (int l = 0; l < kLanesOf<Real>; ++l) v[l] = (bits >> l & 1U) != 0 ? v[l] : -1;
  return v;
}

#endif
