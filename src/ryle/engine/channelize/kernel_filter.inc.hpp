// SPDX-License-Identifier: BSD-3-Clause
// Polyphase filter with lane = branch, then a transpose to lane = spectrum. Included after
// kernel_lanes.inc.hpp. On every path a spectrum's sum is h[0] x[0], then fma in ascending order of
// taps.

/// Filter coefficients of one block of kLanes points.
template <bool kReal>
struct Taps {
  const float* h;
  RYLE_INLINE V re(std::int64_t p) const { return load(h + (kReal ? 2 * p : p) * kLanes); }
  RYLE_INLINE V im(std::int64_t p) const { return load(h + (kReal ? 2 * p + 1 : p) * kLanes); }
};

/// Rows are often a power of two apart, where hardware prefetchers give up.
inline constexpr std::int64_t kPrefetchBytes = 128;

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
    __builtin_prefetch(row + kPrefetchBytes);
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

/// Filters points [n, n + kLanes) of all lanes' spectra into out[kLanes points].
template <bool kReal, class Source>
void filter_block(const KernelPlan& plan, const KernelGroup& group, bool sliding, std::int64_t n,
                  float* temporary, float* out) {
  const std::int64_t offset = n * Source::kPointBytes;
  const Taps<kReal> taps{plan.filter + n / kLanes * plan.n_taps * (kReal ? 2 : 1) * kLanes};
  const std::byte* row = group.start[0] + offset;
  if (sliding && plan.n_taps == 8) {
    filter_sliding<8, kReal, Source>(row, plan.tap_bytes, taps, temporary);
  } else if (sliding && plan.n_taps == 4) {
    filter_sliding<4, kReal, Source>(row, plan.tap_bytes, taps, temporary);
  } else if (sliding && plan.n_taps == 1) {
    filter_sliding<1, kReal, Source>(row, plan.tap_bytes, taps, temporary);
  } else {
    filter_any<kReal, Source>(plan, group.start, offset, taps, temporary);
  }
  transpose(temporary, out);
  transpose(temporary + kLanes * kLanes, out + kLanes);
}
