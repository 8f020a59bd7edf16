// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <immintrin.h>

#include <cstdint>

#include "ryle/engine/correlate/cpu_tile.hpp"

/// Shared source of the 512-bit files (see cpu_tile.hpp): panels by 16x16 transposes of 32-bit words.
namespace ryle::correlate::detail {
namespace {

// Row r, words 4b..4b+3 of four rows r = q, q+4, q+8, q+12 arrive in one register straight from memory (the inserts run
// beside the shuffles), so two rounds of unpacking finish a quarter of the transpose.
inline __m512i four_rows(const std::uint8_t* from, std::int64_t stride, __mmask16 m1, __mmask16 m2, __mmask16 m3,
                         bool first) {
  const auto at = [&](int k) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k * 4 * stride)); };
  __m512i v = first ? _mm512_castsi128_si512(at(0)) : _mm512_setzero_si512();
  if (m1 != 0) v = _mm512_inserti32x4(v, at(1), 1);
  if (m2 != 0) v = _mm512_inserti32x4(v, at(2), 2);
  if (m3 != 0) v = _mm512_inserti32x4(v, at(3), 3);
  return v;
}

// out[w] lane r = word w of row r, words [0, 16) of rows [0, n_rows); absent rows give 0.
inline void transpose16(const std::uint8_t* from, std::int64_t stride, std::int64_t n_rows, __m512i (&out)[16]) {
#pragma GCC unroll 4
  for (int block = 0; block < 4; ++block) {
    __m512i v[4];
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      if (n_rows == 16) {
        v[q] = four_rows(from + q * stride + 16 * block, stride, 1, 1, 1, true);
      } else {
        v[q] = four_rows(from + q * stride + 16 * block, stride, q + 4 < n_rows, q + 8 < n_rows, q + 12 < n_rows,
                         q < n_rows);
      }
    }
    // 128-bit lane L now holds row q + 4 L; lanes come out in the order (row 4L+q) after unpacking q = 0..3.
    const __m512i a = _mm512_unpacklo_epi32(v[0], v[1]);
    const __m512i b = _mm512_unpackhi_epi32(v[0], v[1]);
    const __m512i c = _mm512_unpacklo_epi32(v[2], v[3]);
    const __m512i d = _mm512_unpackhi_epi32(v[2], v[3]);
    out[4 * block] = _mm512_unpacklo_epi64(a, c);
    out[4 * block + 1] = _mm512_unpackhi_epi64(a, c);
    out[4 * block + 2] = _mm512_unpacklo_epi64(b, d);
    out[4 * block + 3] = _mm512_unpackhi_epi64(b, d);
  }
}

inline void store_sums(__m512i re, __m512i im, std::int64_t n_inputs, std::int32_t* sums_re, std::int32_t* sums_im) {
  const auto mask = static_cast<__mmask16>((1u << n_inputs) - 1);
  _mm512_mask_storeu_epi32(sums_re, mask, _mm512_add_epi32(re, _mm512_maskz_loadu_epi32(mask, sums_re)));
  _mm512_mask_storeu_epi32(sums_im, mask, _mm512_add_epi32(im, _mm512_maskz_loadu_epi32(mask, sums_im)));
}

// 8-bit cells: a run of 64 bytes holds 8 words of re, then 8 of im. `flip` and `flip_negative` make the stored planes.
inline void pack_bytes(const Cells& cells, std::int64_t n_inputs, std::int64_t n_cells, std::uint8_t* panel,
                       std::int32_t* sums_re, std::int32_t* sums_im, __m512i flip, __m512i flip_negative) {
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i total_re = _mm512_setzero_si512();
  __m512i total_im = _mm512_setzero_si512();
  auto* to = reinterpret_cast<__m512i*>(panel);
  for (std::int64_t cell = 0; cell < n_cells; ++cell) {
    for (int run = 0; run < 2; ++run, to += 24) {
      __m512i words[16];
      transpose16(cells.data + cell * cells.cell_stride_bytes + run * 64, cells.input_stride_bytes, n_inputs, words);
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) {
        _mm512_store_si512(to + k, _mm512_xor_si512(words[k], flip));
        _mm512_store_si512(to + 8 + k, _mm512_xor_si512(words[8 + k], flip));
        _mm512_store_si512(to + 16 + k, _mm512_xor_si512(words[k], flip_negative));
        total_re = _mm512_dpbusd_epi32(total_re, ones, words[k]);
        total_im = _mm512_dpbusd_epi32(total_im, ones, words[8 + k]);
      }
    }
  }
  store_sums(total_re, total_im, n_inputs, sums_re, sums_im);
}

}  // namespace
}  // namespace ryle::correlate::detail
