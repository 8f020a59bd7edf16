// SPDX-License-Identifier: BSD-3-Clause
// Polyphase filter in floats, y[n] = sum_p h[pK + n] x[pK + n], with lane = branch n, then a
// transpose to lane = spectrum through the level-1 cache. A row of samples is read once and added
// to P sums that slide in registers. On every path a spectrum's sum is h[0] x[0], then fma in
// ascending order of taps. Included after kernel_lanes.inc.hpp.

// Reading the stream: kLanes consecutive points.
struct BytePairs {
  static constexpr std::int64_t kPointBytes = 2;
  static RYLE_INLINE C read(const std::byte* p) {
    const U wide = widen(p);
    return {__builtin_convertvector((I)(wide << 24) >> 24, V),
            __builtin_convertvector((I)(wide << 16) >> 24, V)};
  }
};
/// Real parts, then imaginary parts, as arrange() leaves them.
struct PlanarBytes {
  static RYLE_INLINE C read(const std::byte* p) {
    return {__builtin_convertvector(widen_signed(p), V),
            __builtin_convertvector(widen_signed(p + kLanes), V)};
  }
};
struct FloatPairs {
  static constexpr std::int64_t kPointBytes = 8;
  static RYLE_INLINE C read(const std::byte* p) {
    const auto* f = reinterpret_cast<const float*>(p);
    const V a = load(f);
    const V b = load(f + kLanes);
    C c;
#if defined(__AVX512F__)
    c.re = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    c.im = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#elif defined(__AVX2__)
    c.re = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    c.im = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#else
    c.re = __builtin_shufflevector(a, b, 0, 2, 4, 6);
    c.im = __builtin_shufflevector(a, b, 1, 3, 5, 7);
#endif
    return c;
  }
};

/// Filter coefficients of one block of kLanes points.
template <bool kReal>
struct Taps {
  const float* h;
  RYLE_INLINE V re(std::int64_t p) const { return load(h + (kReal ? 2 * p : p) * kLanes); }
  RYLE_INLINE V im(std::int64_t p) const { return load(h + (kReal ? 2 * p + 1 : p) * kLanes); }
};

#if defined(__AVX2__)
inline constexpr bool kArranges = true;
#else
inline constexpr bool kArranges = false;  // too few lanes: every row would be copied 11 / 4 times
#endif

/// Taps that filter_sliding() is made for.
inline bool slides(std::int64_t n_taps) { return n_taps == 8 || n_taps == 4 || n_taps == 1; }

/// Rows of one vector of spectra, in pairs.
inline std::int64_t arranged_rows(const KernelPlan& plan) { return (kLanes + plan.n_taps) / 2 * 2; }
inline std::int64_t arranged_bytes(const KernelPlan& plan) {
  return (plan.n_points + kLanes - 1) / kLanes * arranged_rows(plan) * 2 * kLanes;
}

/// The next vector's samples follow this one's: while points [n, n + kLanes) are filtered, their
/// share of them comes closer. arrange() alone would wait for memory with all its line buffers
/// full.
RYLE_INLINE void prefetch_next(const KernelPlan& plan, const std::byte* start, std::int64_t n) {
  const std::byte* next = start + (kLanes + plan.n_taps - 1) * plan.tap_bytes + 2 * kLanes * n;
  static_for<0, kLanes / 2>(
      [&](auto line) RYLE_ALWAYS { __builtin_prefetch(next + line * 4 * kLanes, 0, 2); });
}

/// Byte pairs of two rows, each to real parts, then imaginary parts.
RYLE_INLINE void split_pair(const std::byte* a, const std::byte* b, std::byte* out) {
#if defined(__AVX512F__)
  const __m512i even_odd =
      _mm512_broadcast_i32x4(_mm_set_epi8(15, 13, 11, 9, 7, 5, 3, 1, 14, 12, 10, 8, 6, 4, 2, 0));
  const __m512i both = _mm512_inserti64x4(
      _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(a))),
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b)), 1);
  _mm512_store_si512(out, _mm512_permutexvar_epi64(_mm512_set_epi64(7, 5, 6, 4, 3, 1, 2, 0),
                                                   _mm512_shuffle_epi8(both, even_odd)));
#elif defined(__AVX2__)
  const __m256i even_odd = _mm256_broadcastsi128_si256(
      _mm_set_epi8(15, 13, 11, 9, 7, 5, 3, 1, 14, 12, 10, 8, 6, 4, 2, 0));
  const __m256i both = _mm256_inserti128_si256(
      _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a))),
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(b)), 1);
  _mm256_store_si256(reinterpret_cast<__m256i*>(out), _mm256_shuffle_epi8(both, even_odd));
#else
  for (int l = 0; l < 2 * kLanes; ++l) {
    out[l % 2 * kLanes + l / 2] = a[l];
    out[(l % 2 + 2) * kLanes + l / 2] = b[l];
  }
#endif
}

/// Samples of kLanes sliding spectra to [block of kLanes points][row][re, im][lane], so that the
/// filter streams. In place its rows are K samples apart, often a power of two: they fight for the
/// same cache sets, and hardware prefetchers give up.
inline void arrange(const KernelPlan& plan, const std::byte* start, std::byte* out) {
  const std::int64_t n_rows = kLanes + plan.n_taps - 1;
  const std::int64_t block_bytes = arranged_rows(plan) * 2 * kLanes;
  for (std::int64_t r = 0; r < n_rows; r += 2) {
    const std::byte* a = start + r * plan.tap_bytes;
    const std::int64_t next = r + 1 < n_rows ? plan.tap_bytes : 0;
    std::byte* to = out + r * 2 * kLanes;
    for (std::int64_t n = 0; n < plan.n_points; n += kLanes, a += 2 * kLanes, to += block_bytes) {
      __builtin_prefetch(a + 2 * plan.tap_bytes);
      __builtin_prefetch(a + 3 * plan.tap_bytes);
      split_pair(a, a + next, to);
    }
  }
}

/// kLanes spectra one step of K apart: every row is read once and added to P sums that slide in
/// registers.
template <int P, bool kReal, class Source>
RYLE_INLINE void filter_sliding(const std::byte* row, std::int64_t tap_bytes, Taps<kReal> taps,
                                float* out) {
  C sum[P];
  V h_re[P], h_im[P];
  static_for<0, P>([&](auto p) RYLE_ALWAYS {
    h_re[p] = taps.re(p);
    h_im[p] = kReal ? taps.im(p) : h_re[p];
  });
  static_for<0, kLanes + P - 1>([&](auto r) RYLE_ALWAYS {
    const C x = Source::read(row);
    row += tap_bytes;
    static_for<0, P>([&](auto p) RYLE_ALWAYS {
      constexpr int kSpectrum = r - p;
      if constexpr (kSpectrum >= 0 && kSpectrum < kLanes) {
        C& s = sum[kSpectrum % P];
        if constexpr (p == 0) {
          s = {x.re * h_re[0], x.im * h_im[0]};
        } else {
          s = {fma(x.re, h_re[p], s.re), fma(x.im, h_im[p], s.im)};
        }
        if constexpr (p == P - 1) {
          store(out + kSpectrum * kLanes, s.re);
          store(out + (kLanes + kSpectrum) * kLanes, s.im);
        }
      }
    });
  });
}

/// Any number of taps, any distance between spectra.
template <bool kReal, class Source>
void filter_any(const KernelPlan& plan, const std::byte* const* start, std::int64_t offset,
                Taps<kReal> taps, float* out) {
  for (int m = 0; m < kLanes; ++m) {
    const std::byte* row = start[m] + offset;
    C x = Source::read(row);
    C s = {x.re * taps.re(0), x.im * taps.im(0)};
    for (std::int64_t p = 1; p < plan.n_taps; ++p) {
      row += plan.tap_bytes;
      x = Source::read(row);
      s = {fma(x.re, taps.re(p), s.re), fma(x.im, taps.im(p), s.im)};
    }
    store(out + m * kLanes, s.re);
    store(out + (kLanes + m) * kLanes, s.im);
  }
}

/// in[m][n] -> out[n][m] for kLanes x kLanes floats; rows of `out` are one point apart.
/// Quarter-lanes are gathered by loads, so that only two rounds of shuffles remain.
RYLE_INLINE void transpose(const float* in, float* out) {
  using Q = float __attribute__((vector_size(16)));
  constexpr int kQuads = kLanes / 4;
  static_for<0, kQuads>([&](auto a) RYLE_ALWAYS {
    V t[4];
    static_for<0, 4>([&](auto b) RYLE_ALWAYS {
      const auto piece = [&](int quad) RYLE_ALWAYS {
        Q q;
        __builtin_memcpy(&q, in + (4 * quad + b) * kLanes + 4 * a, sizeof q);
        return q;
      };
#if defined(__AVX512F__)
      __m512 v = _mm512_castps128_ps512((__m128)piece(0));
      v = _mm512_insertf32x4(v, (__m128)piece(1), 1);
      v = _mm512_insertf32x4(v, (__m128)piece(2), 2);
      v = _mm512_insertf32x4(v, (__m128)piece(3), 3);
      t[b] = (V)v;
#elif defined(__AVX2__)
      t[b] = (V)_mm256_insertf128_ps(_mm256_castps128_ps256((__m128)piece(0)), (__m128)piece(1), 1);
#else
      t[b] = (V)piece(0);
#endif
    });
#if defined(__AVX512F__)
    const auto low = [](V x, V y)
                         RYLE_ALWAYS { return (V)_mm512_unpacklo_ps((__m512)x, (__m512)y); };
    const auto high = [](V x, V y)
                          RYLE_ALWAYS { return (V)_mm512_unpackhi_ps((__m512)x, (__m512)y); };
    const auto low2 = [](V x, V y)
                          RYLE_ALWAYS { return (V)_mm512_unpacklo_pd((__m512d)x, (__m512d)y); };
    const auto high2 = [](V x, V y)
                           RYLE_ALWAYS { return (V)_mm512_unpackhi_pd((__m512d)x, (__m512d)y); };
#elif defined(__AVX2__)
    const auto low = [](V x, V y)
                         RYLE_ALWAYS { return (V)_mm256_unpacklo_ps((__m256)x, (__m256)y); };
    const auto high = [](V x, V y)
                          RYLE_ALWAYS { return (V)_mm256_unpackhi_ps((__m256)x, (__m256)y); };
    const auto low2 = [](V x, V y)
                          RYLE_ALWAYS { return (V)_mm256_unpacklo_pd((__m256d)x, (__m256d)y); };
    const auto high2 = [](V x, V y)
                           RYLE_ALWAYS { return (V)_mm256_unpackhi_pd((__m256d)x, (__m256d)y); };
#else
    const auto low = [](V x, V y) RYLE_ALWAYS { return __builtin_shufflevector(x, y, 0, 4, 1, 5); };
    const auto high = [](V x, V y)
                          RYLE_ALWAYS { return __builtin_shufflevector(x, y, 2, 6, 3, 7); };
    const auto low2 = [](V x, V y)
                          RYLE_ALWAYS { return __builtin_shufflevector(x, y, 0, 1, 4, 5); };
    const auto high2 = [](V x, V y)
                           RYLE_ALWAYS { return __builtin_shufflevector(x, y, 2, 3, 6, 7); };
#endif
    const V l01 = low(t[0], t[1]), h01 = high(t[0], t[1]), l23 = low(t[2], t[3]),
            h23 = high(t[2], t[3]);
    store(out + (4 * a + 0) * kPoint, low2(l01, l23));
    store(out + (4 * a + 1) * kPoint, high2(l01, l23));
    store(out + (4 * a + 2) * kPoint, low2(h01, h23));
    store(out + (4 * a + 3) * kPoint, high2(h01, h23));
  });
}

/// The integers of kernel_digits.inc.hpp for windows at any distance.
template <bool kReal>
void filter_whole(const KernelPlan& plan, const std::byte* const* start, std::int64_t n,
                  float* temporary) {
  const std::int32_t* table = plan.whole + n * plan.n_taps * (kReal ? 2 : 1);
  for (int m = 0; m < kLanes; ++m) {
    const std::byte* row = start[m] + 2 * n;
    const std::int32_t* h = table;
    I re{}, im{};
    for (std::int64_t p = 0; p < plan.n_taps; ++p, row += plan.tap_bytes) {
      const U wide = widen(row);
      I h_re, h_im;
      __builtin_memcpy(&h_re, h, sizeof h_re);
      h += kReal ? kLanes : 0;
      __builtin_memcpy(&h_im, h, sizeof h_im);
      h += kLanes;
      re += ((I)(wide << 24) >> 24) * h_re;
      im += ((I)(wide << 16) >> 24) * h_im;
    }
    store(temporary + m * kLanes, __builtin_convertvector(re, V));
    store(temporary + (kLanes + m) * kLanes, __builtin_convertvector(im, V));
  }
}

template <bool kReal, class Source>
RYLE_INLINE void filter_taps(const KernelPlan& plan, const std::byte* row, std::int64_t tap_bytes,
                             Taps<kReal> taps, float* out) {
  if (plan.n_taps == 8) {
    filter_sliding<8, kReal, Source>(row, tap_bytes, taps, out);
  } else if (plan.n_taps == 4) {
    filter_sliding<4, kReal, Source>(row, tap_bytes, taps, out);
  } else {
    filter_sliding<1, kReal, Source>(row, tap_bytes, taps, out);
  }
}

/// Filters points [n, n + kLanes) of all lanes' spectra into out[kLanes points].
/// arranged: of arrange(), or nullptr unless spectra slide.
template <bool kReal, class Source>
void filter_block(const KernelPlan& plan, const KernelGroup& group, bool sliding,
                  const std::byte* arranged, std::int64_t n, float* temporary, float* out) {
  const std::int64_t offset = n * Source::kPointBytes;
  const Taps<kReal> taps{plan.filter + n / kLanes * plan.n_taps * (kReal ? 2 : 1) * kLanes};
  constexpr bool kPlanar = kArranges && std::is_same_v<Source, BytePairs>;
  using Sliding = std::conditional_t<kPlanar, PlanarBytes, Source>;
  if (sliding) {
    if (kPlanar) prefetch_next(plan, group.start[0], n);
    const std::byte* row =
        kPlanar ? arranged + offset * arranged_rows(plan) : group.start[0] + offset;
    filter_taps<kReal, Sliding>(plan, row, kPlanar ? 2 * kLanes : plan.tap_bytes, taps, temporary);
  } else if (plan.digits != nullptr) {
    filter_whole<kReal>(plan, group.start, n, temporary);
  } else {
    filter_any<kReal, Source>(plan, group.start, offset, taps, temporary);
  }
  transpose(temporary, out);
  transpose(temporary + kLanes * kLanes, out + kLanes);
}
