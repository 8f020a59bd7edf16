// SPDX-License-Identifier: BSD-3-Clause
// Words of neighbouring inputs to one row of byte pairs per input. Included after
// kernel_lanes.inc.hpp.

inline constexpr int kWordInputs = 2 * kLanes;
/// Ticks ahead: neighbouring ticks often lie in different lines or pages, where hardware gives up.
inline constexpr std::int64_t kWordPrefetch = 32;
using W = std::uint16_t __attribute__((vector_size(4 * kLanes)));
using SignedW = std::int16_t __attribute__((vector_size(4 * kLanes)));

#if defined(__AVX512F__)
RYLE_INLINE W interleave_low(W a, W b) { return (W)_mm512_unpacklo_epi16((__m512i)a, (__m512i)b); }
RYLE_INLINE W interleave_high(W a, W b) { return (W)_mm512_unpackhi_epi16((__m512i)a, (__m512i)b); }
#elif defined(__AVX2__)
RYLE_INLINE W interleave_low(W a, W b) { return (W)_mm256_unpacklo_epi16((__m256i)a, (__m256i)b); }
RYLE_INLINE W interleave_high(W a, W b) { return (W)_mm256_unpackhi_epi16((__m256i)a, (__m256i)b); }
#else
RYLE_INLINE W interleave_low(W a, W b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
RYLE_INLINE W interleave_high(W a, W b) {
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}
#endif

/// 8 x 8 transposes of the 16-bit words in every 128 bits: three rounds of interleaving.
RYLE_INLINE void transpose_words(W (&r)[8]) {
  static_for<0, 3>([&](auto) RYLE_ALWAYS {
    W s[8];
    static_for<0, 4>([&](auto i) RYLE_ALWAYS {
      s[2 * i] = interleave_low(r[i], r[i + 4]);
      s[2 * i + 1] = interleave_high(r[i], r[i + 4]);
    });
    static_for<0, 8>([&](auto i) RYLE_ALWAYS { r[i] = s[i]; });
  });
}

/// 128 bits number q of vector i to out[q] + i * step.
RYLE_INLINE void store_words(const W (&r)[8], std::byte* const (&out)[kWordInputs / 8],
                             std::int64_t step) {
  static_for<0, 8>([&](auto i) RYLE_ALWAYS {
#if defined(__AVX512F__)
    const auto put = [&](int q, __m128i v) RYLE_ALWAYS {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out[q] + i * step), v);
    };
    put(0, _mm512_castsi512_si128((__m512i)r[i]));
    put(1, _mm512_extracti32x4_epi32((__m512i)r[i], 1));
    put(2, _mm512_extracti32x4_epi32((__m512i)r[i], 2));
    put(3, _mm512_extracti32x4_epi32((__m512i)r[i], 3));
#else
    for (int q = 0; q < kWordInputs / 8; ++q)
      __builtin_memcpy(out[q] + i * step, reinterpret_cast<const std::byte*>(&r[i]) + 16 * q, 16);
#endif
  });
}

/// The same with 128 bits number q at out + q * stride.
RYLE_INLINE void store_words(const W (&r)[8], std::byte* out, std::int64_t stride,
                             std::int64_t step) {
  std::byte* to[kWordInputs / 8];
  for (int q = 0; q < kWordInputs / 8; ++q) to[q] = out + q * stride;
  store_words(r, to, step);
}

/// Two's-complement bytes (re low, im high).
template <bool kFlip>
RYLE_INLINE W decode_words(W w, const KernelWords& d) {
  W re = w << d.re_up;
  W im = w << d.im_up;
  if constexpr (kFlip) {
    re ^= d.flip;
    im ^= d.flip;
  }
  // The imaginary part stays in the high byte.
  re = (W)((SignedW)re >> static_cast<std::int16_t>(d.down));
  im = (W)((SignedW)im >> static_cast<std::int16_t>(d.down - 8));
  return (re & static_cast<std::uint16_t>(0x00ff)) | (im & static_cast<std::uint16_t>(0xff00));
}

template <bool kFlip>
std::int64_t unpack_tiles(const KernelWords& d, const unsigned char* bytes, std::int64_t stride,
                          std::int64_t count, std::byte* out, std::int64_t row_bytes) {
  std::int64_t t = 0;
  for (; t + 8 <= count; t += 8) {
    // Every 128 bits of a vector hold 8 inputs of one tick.
    W r[8];
    static_for<0, 8>([&](auto i) RYLE_ALWAYS {
      __builtin_memcpy(&r[i], bytes + (t + i) * stride, sizeof(W));
      __builtin_prefetch(bytes + (t + i + kWordPrefetch) * stride);
      r[i] = decode_words<kFlip>(r[i], d);
    });
    transpose_words(r);
    store_words(r, out + 2 * t, 8 * row_bytes, row_bytes);
  }
  return t;
}

inline std::int64_t unpack_words(const KernelWords& d, const unsigned char* bytes,
                                 std::int64_t stride, std::int64_t count, std::byte* out,
                                 std::int64_t row_bytes) {
  return d.flip != 0 ? unpack_tiles<true>(d, bytes, stride, count, out, row_bytes)
                     : unpack_tiles<false>(d, bytes, stride, count, out, row_bytes);
}
