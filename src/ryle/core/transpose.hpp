// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ryle {

/// Rows and columns of a tile.
inline constexpr std::int64_t kTransposeTile = 16;

/// 16 rows of 16 bytes, `from_stride` apart, to 16 columns. Interleaving row k with row k + 8 four
/// times is the perfect shuffle of the 8 address bits (row, column) by 4: the transpose. The
/// compiler makes punpck / zip of the shuffles on any machine that has vectors.
inline void transpose_tile(const std::byte* from, std::int64_t from_stride, std::byte* to,
                           std::int64_t to_stride) noexcept {
  using Bytes = std::uint8_t __attribute__((vector_size(16)));
  Bytes rows[kTransposeTile], next[kTransposeTile];
  for (std::int64_t k = 0; k < kTransposeTile; ++k)
    std::memcpy(&rows[k], from + k * from_stride, kTransposeTile);
#pragma GCC unroll 4
  for (int pass = 0; pass < 4; ++pass) {
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) {
      const Bytes a = rows[k], b = rows[k + 8];
      next[2 * k] =
          __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      next[2 * k + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29,
                                                14, 30, 15, 31);
    }
#pragma GCC unroll 16
    for (int k = 0; k < kTransposeTile; ++k) rows[k] = next[k];
  }
  for (std::int64_t k = 0; k < kTransposeTile; ++k)
    std::memcpy(to + k * to_stride, &rows[k], kTransposeTile);
}

}  // namespace ryle
