// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <immintrin.h>

#include <cstdint>

#include "ryle/engine/correlate/cpu/tile.hpp"

/// Shared source of the 256-bit files (see cpu/tile.hpp): panels by 8x8 transposes of 32-bit words.
/// Intrinsics, not ryle/simd/vector.inc.hpp, which gives other instructions (README of ryle/simd).
namespace ryle::correlate::detail {
namespace {

// Eight 32-bit words a vector, one a column.
struct Words256 {
  using Vec = __m256i;
  static constexpr std::int64_t kColumns = 8;
  static Vec zero() { return _mm256_setzero_si256(); }
  static Vec load(const std::uint8_t* p) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(p));
  }
  static Vec broadcast(const std::uint8_t* p) {
    std::int32_t word;
    std::memcpy(&word, p, 4);
    return _mm256_set1_epi32(word);
  }
  static void add(std::int32_t* to, Vec re, Vec im) {
    auto* p = reinterpret_cast<__m256i*>(to);
    _mm256_store_si256(p, _mm256_add_epi32(_mm256_load_si256(p), re));
    _mm256_store_si256(p + 1, _mm256_add_epi32(_mm256_load_si256(p + 1), im));
  }
};

inline void transpose8(__m256i (&v)[8]) {
  __m256i a[8];
  for (int k = 0; k < 4; ++k) {
    a[2 * k] = _mm256_unpacklo_epi32(v[2 * k], v[2 * k + 1]);
    a[2 * k + 1] = _mm256_unpackhi_epi32(v[2 * k], v[2 * k + 1]);
  }
  __m256i b[8];
  for (int k = 0; k < 2; ++k) {
    b[4 * k] = _mm256_unpacklo_epi64(a[4 * k], a[4 * k + 2]);
    b[4 * k + 1] = _mm256_unpackhi_epi64(a[4 * k], a[4 * k + 2]);
    b[4 * k + 2] = _mm256_unpacklo_epi64(a[4 * k + 1], a[4 * k + 3]);
    b[4 * k + 3] = _mm256_unpackhi_epi64(a[4 * k + 1], a[4 * k + 3]);
  }
  for (int k = 0; k < 4; ++k) {
    v[k] = _mm256_permute2x128_si256(b[k], b[k + 4], 0x20);
    v[k + 4] = _mm256_permute2x128_si256(b[k], b[k + 4], 0x31);
  }
}

// Ops adds to those of cpu/tile.hpp: stored(x), negative(x) of a vector, sums(x) of the samples in
// each word.
template <class Ops>
void pack_transposed(const Cells& cells, std::int64_t n_inputs, std::int64_t n_cells,
                     std::uint8_t* panel, std::int32_t* sums_re, std::int32_t* sums_im) {
  constexpr std::int64_t kPlane = Ops::kRunSteps * 32;
  __m256i total_re = _mm256_setzero_si256();
  __m256i total_im = _mm256_setzero_si256();
  for (std::int64_t cell = 0; cell < n_cells; ++cell) {
    for (int run = 0; run < Ops::kRuns; ++run, panel += 3 * kPlane) {
      const std::uint8_t* from = cells.data + cell * cells.cell_stride_bytes + run * Ops::kRunBytes;
      for (int step = 0; step < Ops::kRunSteps; step += 8) {
        __m256i re[8];
        __m256i im[8];
        for (std::int64_t column = 0; column < 8; ++column) {
          const std::uint8_t* at = from + column * cells.input_stride_bytes + 4 * step;
          const bool inside = column < n_inputs;
          re[column] = inside ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at))
                              : _mm256_setzero_si256();
          im[column] =
              inside ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + Ops::kImBytes))
                     : _mm256_setzero_si256();
        }
        transpose8(re);
        transpose8(im);
        for (int k = 0; k < 8; ++k) {
          auto* to = reinterpret_cast<__m256i*>(panel + (step + k) * 32);
          _mm256_store_si256(to, Ops::stored(re[k]));
          _mm256_store_si256(to + kPlane / 32, Ops::stored(im[k]));
          _mm256_store_si256(to + 2 * kPlane / 32, Ops::negative(re[k]));
          total_re = _mm256_add_epi32(total_re, Ops::sums(re[k]));
          total_im = _mm256_add_epi32(total_im, Ops::sums(im[k]));
        }
      }
    }
  }
  alignas(32) std::int32_t sums[2][8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(sums[0]), total_re);
  _mm256_store_si256(reinterpret_cast<__m256i*>(sums[1]), total_im);
  for (std::int64_t column = 0; column < n_inputs; ++column) {
    sums_re[column] += sums[0][column];
    sums_im[column] += sums[1][column];
  }
}

}  // namespace
}  // namespace ryle::correlate::detail
