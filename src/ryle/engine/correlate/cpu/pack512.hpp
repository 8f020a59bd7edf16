// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "ryle/engine/correlate/cpu/tile.hpp"

/// Shared source of the 512-bit files (see cpu/tile.hpp): panels by 16x16 transposes of 32-bit
/// words.
namespace ryle::correlate::detail {
namespace {

// Words 4b..4b+3 of rows q, q+4, q+8, q+12 come into one register straight from memory.
inline __m512i four_rows(const std::uint8_t* from, std::int64_t stride) {
  const auto at = [&](int k) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k * 4 * stride));
  };
  __m512i v = _mm512_castsi128_si512(at(0));
  v = _mm512_inserti32x4(v, at(1), 1);
  v = _mm512_inserti32x4(v, at(2), 2);
  return _mm512_inserti32x4(v, at(3), 3);
}

// out[w] lane r = word 4 block + w of row r, 16 rows. 128-bit lane L of four_rows(q) holds row 4 L
// + q, so two rounds of unpacking the four q put the rows in order: the inserts run beside the
// shuffles, which are half of a plain transpose.
inline void transpose_block(const std::uint8_t* from, std::int64_t stride, __m512i (&out)[4]) {
  const __m512i v0 = four_rows(from, stride);
  const __m512i v1 = four_rows(from + stride, stride);
  const __m512i v2 = four_rows(from + 2 * stride, stride);
  const __m512i v3 = four_rows(from + 3 * stride, stride);
  const __m512i a = _mm512_unpacklo_epi32(v0, v1);
  const __m512i b = _mm512_unpackhi_epi32(v0, v1);
  const __m512i c = _mm512_unpacklo_epi32(v2, v3);
  const __m512i d = _mm512_unpackhi_epi32(v2, v3);
  out[0] = _mm512_unpacklo_epi64(a, c);
  out[1] = _mm512_unpackhi_epi64(a, c);
  out[2] = _mm512_unpacklo_epi64(b, d);
  out[3] = _mm512_unpackhi_epi64(b, d);
}

#if defined(__AVX512VNNI__)
inline void store_sums(__m512i re, __m512i im, std::int64_t n_inputs, std::int32_t* sums_re,
                       std::int32_t* sums_im) {
  const auto mask = static_cast<__mmask16>((1u << n_inputs) - 1);
  _mm512_mask_storeu_epi32(sums_re, mask,
                           _mm512_add_epi32(re, _mm512_maskz_loadu_epi32(mask, sums_re)));
  _mm512_mask_storeu_epi32(sums_im, mask,
                           _mm512_add_epi32(im, _mm512_maskz_loadu_epi32(mask, sums_im)));
}

// 8-bit cells: a run of 64 bytes holds 8 words of re, then 8 of im. `flip` and `flip_negative` make
// the stored planes.
inline void pack_bytes(const Cells& cells, std::int64_t n_inputs, std::int64_t n_cells,
                       std::uint8_t* panel, std::int32_t* sums_re, std::int32_t* sums_im,
                       __m512i flip, __m512i flip_negative) {
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i total_re = _mm512_setzero_si512();
  __m512i total_im = _mm512_setzero_si512();
  alignas(64) std::uint8_t partial[16 * 64] = {};  // the last panel: absent inputs are 0
  auto* to = reinterpret_cast<__m512i*>(panel);
  for (std::int64_t run = 0; run < 2 * n_cells; ++run, to += 24) {
    const std::uint8_t* from = cells.data + run / 2 * cells.cell_stride_bytes + run % 2 * 64;
    std::int64_t stride = cells.input_stride_bytes;
    if (n_inputs < 16) {
      for (std::int64_t k = 0; k < n_inputs; ++k)
        std::memcpy(partial + 64 * k, from + k * stride, 64);
      from = partial;
      stride = 64;
    }
    __m512i words[4];
    for (int block = 0; block < 2; ++block) {
      transpose_block(from + 16 * block, stride, words);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        _mm512_store_si512(to + 4 * block + k, _mm512_xor_si512(words[k], flip));
        _mm512_store_si512(to + 16 + 4 * block + k, _mm512_xor_si512(words[k], flip_negative));
        total_re = _mm512_dpbusd_epi32(total_re, ones, words[k]);
      }
      transpose_block(from + 32 + 16 * block, stride, words);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        _mm512_store_si512(to + 8 + 4 * block + k, _mm512_xor_si512(words[k], flip));
        total_im = _mm512_dpbusd_epi32(total_im, ones, words[k]);
      }
    }
  }
  store_sums(total_re, total_im, n_inputs, sums_re, sums_im);
}

#endif

}  // namespace
}  // namespace ryle::correlate::detail
