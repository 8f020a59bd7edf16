// SPDX-License-Identifier: BSD-3-Clause
// Powers of 16 rows to bytes with time unit-stride. Included inside an unnamed namespace by the
// AVX-512 files.

// Exact counts of what the packs below will cut; rare, so a plain loop.
inline void count_cut(const __m512i* codes, int n, std::uint32_t* n_low, std::uint32_t* n_high) {
  for (int k = 0; k < n; ++k) {
    const __mmask16 low = _mm512_cmplt_epi32_mask(codes[k], _mm512_setzero_si512());
    const __mmask16 high = _mm512_cmpgt_epi32_mask(codes[k], _mm512_set1_epi32(255));
    for (int lane = 0; lane < 16; ++lane) {
      n_low[lane] += (low >> lane) & 1;
      n_high[lane] += (high >> lane) & 1;
    }
  }
}

// Codes of 4 times -> in each 128-bit lane q: rows 4q .. 4q+3, 4 bytes of time each.
RYLE_INLINE __m512i four_times(const Quantize& q, std::int64_t k, __m512 scale, __m512 offset) {
  __m512i code[4];
  const int n = q.n - k < 4 ? static_cast<int>(q.n - k) : 4;
  for (int j = 0; j < 4; ++j) {
    // Past the end: the last time again, never stored and never counted.
    const float* from = q.plane + (k + (j < n ? j : n - 1)) * kLanes;
    const __m512 value = _mm512_fmadd_ps(_mm512_loadu_ps(from), scale, offset);
    // The conversion gives INT32_MIN for what does not fit: cut first.
    code[j] = _mm512_cvtps_epi32(_mm512_min_ps(value, _mm512_set1_ps(32767.0f)));
  }
  const __m512i first = _mm512_packs_epi32(code[0], code[1]);
  const __m512i second = _mm512_packs_epi32(code[2], code[3]);
  // A word outside 0..255 has a bit of its high byte set; packs_epi32 keeps that.
  if (_mm512_test_epi16_mask(_mm512_or_si512(first, second), _mm512_set1_epi16(-256)) != 0)
    count_cut(code, n, q.n_low, q.n_high);
  const __m512i bytes = _mm512_packus_epi16(first, second);  // [time][row] in each lane
  const __m512i order =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  return _mm512_shuffle_epi8(bytes, order);  // [row][time]
}

// 16 times: out[j], 128-bit lane q = row 4q + j.
RYLE_INLINE void sixteen_times(const Quantize& q, std::int64_t k, __m512 scale, __m512 offset,
                               __m512i* out) {
  __m512i z[4];
  for (int j = 0; j < 4; ++j) {
    const bool past_the_end = k + 4 * j >= q.n;
    z[j] = past_the_end ? _mm512_setzero_si512() : four_times(q, k + 4 * j, scale, offset);
  }
  const __m512i a = _mm512_unpacklo_epi32(z[0], z[1]), b = _mm512_unpackhi_epi32(z[0], z[1]);
  const __m512i c = _mm512_unpacklo_epi32(z[2], z[3]), d = _mm512_unpackhi_epi32(z[2], z[3]);
  out[0] = _mm512_unpacklo_epi64(a, c);
  out[1] = _mm512_unpackhi_epi64(a, c);
  out[2] = _mm512_unpacklo_epi64(b, d);
  out[3] = _mm512_unpackhi_epi64(b, d);
}

inline void quantize_u8(const Quantize& q, std::uint8_t* const* out, std::int64_t n_lanes) {
  const __m512 scale = _mm512_loadu_ps(q.scale), offset = _mm512_loadu_ps(q.offset);
  __m512i y[4][4];  // [16 times][j]
  const int pieces = static_cast<int>((q.n + 15) / 16);
  for (int piece = 0; piece < pieces; ++piece)
    sixteen_times(q, 16 * piece, scale, offset, y[piece]);
  for (int piece = pieces; piece < 4; ++piece)
    for (int j = 0; j < 4; ++j) y[piece][j] = _mm512_setzero_si512();
  const __mmask64 wanted = q.n >= 64 ? ~__mmask64{0} : (__mmask64{1} << q.n) - 1;
  for (int j = 0; j < 4; ++j) {
    // 4 x 4 transpose of 128-bit lanes: one whole line of 64 times per row.
    const __m512i a = _mm512_shuffle_i32x4(y[0][j], y[1][j], 0x44);
    const __m512i b = _mm512_shuffle_i32x4(y[0][j], y[1][j], 0xee);
    const __m512i c = _mm512_shuffle_i32x4(y[2][j], y[3][j], 0x44);
    const __m512i d = _mm512_shuffle_i32x4(y[2][j], y[3][j], 0xee);
    const __m512i rows[4] = {_mm512_shuffle_i32x4(a, c, 0x88), _mm512_shuffle_i32x4(a, c, 0xdd),
                             _mm512_shuffle_i32x4(b, d, 0x88), _mm512_shuffle_i32x4(b, d, 0xdd)};
    for (int lane = 0; lane < 4; ++lane) {
      if (4 * lane + j < n_lanes) _mm512_mask_storeu_epi8(out[4 * lane + j], wanted, rows[lane]);
    }
  }
}
