// SPDX-License-Identifier: BSD-3-Clause
// Powers of 16 rows to bytes, code = clamp(rne(p scale + offset), 0, 255), and to floats, both with
// time unit-stride: [spectrum][lane] becomes [row][spectrum]. Included inside an unnamed namespace
// by the AVX-512 files.

// Where the values of a spectrum come from: a plane, or raw sums.
struct FromPlane {
  const float* plane;
  __m512 scale, offset;
  RYLE_INLINE __m512 at(std::int64_t k) const {
    return _mm512_fmadd_ps(_mm512_loadu_ps(plane + k * kLanes), scale, offset);
  }
};
template <bool Integer>
struct FromSums {
  const void* raw;
  __m512 scale, offset;
  RYLE_INLINE __m512 at(std::int64_t k) const {
    const __m512 re = raw_at<Integer>(raw, 2 * k * kLanes);
    const __m512 im = raw_at<Integer>(raw, (2 * k + 1) * kLanes);
    return _mm512_fmadd_ps(_mm512_fmadd_ps(re, re, _mm512_mul_ps(im, im)), scale, offset);
  }
};
// How many codes of a tile lie outside 0 .. 255: 16-bit words in the order of packs_epi32, which
// keeps them outside. No branches: a power has its exponential tail, so most groups hold one.
template <bool Low>
struct Counts {
  __m512i low, high;

  RYLE_INLINE void add(__m512i words, __mmask32 there) {
    const __m512i one = _mm512_set1_epi16(1);
    const __mmask32 over = _mm512_mask_cmpgt_epi16_mask(there, words, _mm512_set1_epi16(255));
    high = _mm512_mask_add_epi16(high, over, high, one);
    if constexpr (Low)
      low = _mm512_mask_add_epi16(low, there & _mm512_movepi16_mask(words), low, one);
  }
  // Words 0 .. 3 and 4 .. 7 of lane q are rows 4q .. 4q + 3 at two times.
  static RYLE_INLINE void flush(__m512i words, std::uint32_t* to) {
    const __m512i both = _mm512_add_epi16(words, _mm512_bsrli_epi128(words, 8));
    const __m256i rows = _mm512_castsi512_si256(
        _mm512_permutexvar_epi64(_mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), both));
    _mm512_storeu_si512(to, _mm512_add_epi32(_mm512_loadu_si512(to), _mm512_cvtepu16_epi32(rows)));
  }
};

// Codes of 4 times -> in each 128-bit lane q: rows 4q .. 4q+3, 4 bytes of time each. Of a tile that
// is not full, `left` times are there; what follows is computed and neither counted nor stored.
template <bool Cut, bool Full, bool Low, class From>
RYLE_INLINE __m512i four_times(const From& from, std::int64_t k, std::int64_t left,
                               Counts<Low>& counts) {
  __m512i code[4];
  static_for<0, 4>([&](auto j) RYLE_ALWAYS {
    // Past the end: the last time again.
    __m512 value = from.at(Full || j < left ? k + j : k + left - 1);
    // The conversion gives INT32_MIN for what does not fit: cut first.
    if constexpr (Cut) value = _mm512_min_ps(value, _mm512_set1_ps(32767.0f));
    code[j] = _mm512_cvtps_epi32(value);
  });
  const __m512i first = _mm512_packs_epi32(code[0], code[1]);
  const __m512i second = _mm512_packs_epi32(code[2], code[3]);
  const auto there = [&](std::int64_t time) RYLE_ALWAYS -> __mmask32 {
    constexpr __mmask32 kFirst = 0x0f0f0f0f;
    return Full || left >= time + 2 ? ~__mmask32{0} : left == time + 1 ? kFirst : 0;
  };
  counts.add(first, there(0));
  counts.add(second, there(2));
  const __m512i bytes = _mm512_packus_epi16(first, second);  // [time][row] in each lane
  const __m512i order =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  return _mm512_shuffle_epi8(bytes, order);  // [row][time]
}

// 16 times: out[j], 128-bit lane q = row 4q + j.
template <bool Cut, bool Full, bool Low, class From>
RYLE_INLINE void sixteen_times(const From& from, std::int64_t k, std::int64_t n,
                               Counts<Low>& counts, __m512i* out) {
  __m512i z[4];
  static_for<0, 4>([&](auto j) RYLE_ALWAYS {
    const std::int64_t left = n - k - 4 * j;
    z[j] = Full || left > 0 ? four_times<Cut, Full>(from, k + 4 * j, left, counts)
                            : _mm512_setzero_si512();
  });
  const __m512i a = _mm512_unpacklo_epi32(z[0], z[1]), b = _mm512_unpackhi_epi32(z[0], z[1]);
  const __m512i c = _mm512_unpacklo_epi32(z[2], z[3]), d = _mm512_unpackhi_epi32(z[2], z[3]);
  out[0] = _mm512_unpacklo_epi64(a, c);
  out[1] = _mm512_unpackhi_epi64(a, c);
  out[2] = _mm512_unpacklo_epi64(b, d);
  out[3] = _mm512_unpackhi_epi64(b, d);
}

// 4 x 4 transpose of 128-bit lanes: one whole line of 64 times per row.
inline void store_lines(const __m512i (*y)[4], std::int64_t n, const Rows& out) {
  const __mmask64 wanted = n >= 64 ? ~__mmask64{0} : (__mmask64{1} << n) - 1;
  for (int j = 0; j < 4; ++j) {
    const __m512i a = _mm512_shuffle_i32x4(y[0][j], y[1][j], 0x44);
    const __m512i b = _mm512_shuffle_i32x4(y[0][j], y[1][j], 0xee);
    const __m512i c = _mm512_shuffle_i32x4(y[2][j], y[3][j], 0x44);
    const __m512i d = _mm512_shuffle_i32x4(y[2][j], y[3][j], 0xee);
    const __m512i rows[4] = {_mm512_shuffle_i32x4(a, c, 0x88), _mm512_shuffle_i32x4(a, c, 0xdd),
                             _mm512_shuffle_i32x4(b, d, 0x88), _mm512_shuffle_i32x4(b, d, 0xdd)};
    for (int lane = 0; lane < 4; ++lane) {
      if (4 * lane + j >= out.n_lanes) continue;
      std::uint8_t* to = out.first + (4 * lane + j) * out.stride_bytes;
      // Whole lines go past the caches: rows lie at strides that all meet in one set of them, and a
      // line is written once.
      if (n >= 64 && reinterpret_cast<std::uintptr_t>(to) % 64 == 0) {
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to), rows[lane]);
      } else {
        _mm512_mask_storeu_epi8(to, wanted, rows[lane]);
      }
    }
  }
}

template <bool Cut, bool Low, class From>
RYLE_INLINE void bytes_of(const From& from, std::int64_t n, std::uint32_t* n_low,
                          std::uint32_t* n_high, const Rows& out) {
  __m512i y[4][4];  // [16 times][j]
  Counts<Low> counts{_mm512_setzero_si512(), _mm512_setzero_si512()};
  if (n == kTile) {
    for (int piece = 0; piece < 4; ++piece)
      sixteen_times<Cut, true>(from, 16 * piece, n, counts, y[piece]);
  } else {
    for (int piece = 0; piece < 4; ++piece)
      sixteen_times<Cut, false>(from, 16 * piece, n, counts, y[piece]);
  }
  counts.flush(counts.high, n_high);
  if constexpr (Low) counts.flush(counts.low, n_low);
  store_lines(y, n, out);
}

inline void quantize_u8(const Quantize& q, const Rows& out) {
  const FromPlane from{q.plane, _mm512_loadu_ps(q.scale), _mm512_loadu_ps(q.offset)};
  bytes_of<true, true>(from, q.n, q.n_low, q.n_high, out);
}

template <bool Integer>
inline void power_u8(const PowerBytes& p, const Rows& out) {
  const __m512 sums = _mm512_loadu_ps(p.sum_scale);
  const __m512 scale = _mm512_mul_ps(_mm512_mul_ps(sums, sums), _mm512_loadu_ps(p.scale));
  const FromSums<Integer> from{p.raw, scale, _mm512_loadu_ps(p.offset)};
  if (p.fits) {
    bytes_of<false, false>(from, p.n, p.n_low, p.n_high, out);
  } else {
    bytes_of<true, true>(from, p.n, p.n_low, p.n_high, out);
  }
}

// 16 x 16 transpose of floats: a[lane] = 16 times of a row.
RYLE_INLINE void transpose16(__m512* a) {
  __m512 b[16];
  static_for<0, 8>([&](auto k) RYLE_ALWAYS {  // pairs of times
    b[2 * k] = _mm512_unpacklo_ps(a[2 * k], a[2 * k + 1]);
    b[2 * k + 1] = _mm512_unpackhi_ps(a[2 * k], a[2 * k + 1]);
  });
  static_for<0, 4>([&](auto k) RYLE_ALWAYS {  // 4 times of one row in each 128-bit lane
    const auto low = [&](int i) RYLE_ALWAYS { return _mm512_castps_pd(b[4 * k + i]); };
    a[4 * k] = _mm512_castpd_ps(_mm512_unpacklo_pd(low(0), low(2)));
    a[4 * k + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low(0), low(2)));
    a[4 * k + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(low(1), low(3)));
    a[4 * k + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(low(1), low(3)));
  });
  static_for<0, 4>([&](auto k) RYLE_ALWAYS {  // row 4 q + k: lane q of a[k], a[4 + k], ...
    const __m512 x = _mm512_shuffle_f32x4(a[k], a[4 + k], 0x44);
    const __m512 y = _mm512_shuffle_f32x4(a[k], a[4 + k], 0xee);
    const __m512 z = _mm512_shuffle_f32x4(a[8 + k], a[12 + k], 0x44);
    const __m512 w = _mm512_shuffle_f32x4(a[8 + k], a[12 + k], 0xee);
    b[k] = _mm512_shuffle_f32x4(x, z, 0x88);
    b[4 + k] = _mm512_shuffle_f32x4(x, z, 0xdd);
    b[8 + k] = _mm512_shuffle_f32x4(y, w, 0x88);
    b[12 + k] = _mm512_shuffle_f32x4(y, w, 0xdd);
  });
  static_for<0, 16>([&](auto k) RYLE_ALWAYS { a[k] = b[k]; });
}

// As store_f32, whole lines of 16 times past the caches; the rest as everywhere.
inline void store_f32_lines(const float* plane, std::int64_t n, const Rows& out) {
  const std::int64_t whole = n / 16 * 16;
  for (std::int64_t k = 0; k < whole; k += 16) {
    __m512 a[16];
    static_for<0, 16>([&](auto t)
                          RYLE_ALWAYS { a[t] = _mm512_loadu_ps(plane + (k + t) * kLanes); });
    transpose16(a);
    for (std::int64_t lane = 0; lane < out.n_lanes; ++lane) {
      auto* to = reinterpret_cast<float*>(out.first + lane * out.stride_bytes) + k;
      if (reinterpret_cast<std::uintptr_t>(to) % 64 == 0) {
        _mm512_stream_ps(to, a[lane]);
      } else {
        _mm512_storeu_ps(to, a[lane]);
      }
    }
  }
  if (whole == n) return;
  store_f32(plane + whole * kLanes, n - whole,
            {out.first + whole * std::int64_t{sizeof(float)}, out.stride_bytes, out.n_lanes});
}

inline void fence() { _mm_sfence(); }
