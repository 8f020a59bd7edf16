// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

namespace ryle {

/// Bit planes: bit k of a row lives in word k/64, position k%64. 1 = present (or valid).
constexpr std::int64_t words_for_bits(std::int64_t n_bits) { return (n_bits + 63) / 64; }
inline bool test_bit(const std::uint64_t* row, std::int64_t k) {
  return (row[k >> 6] >> (k & 63)) & 1u;
}
inline void set_bit(std::uint64_t* row, std::int64_t k) {
  row[k >> 6] |= std::uint64_t{1} << (k & 63);
}
inline void clear_bit(std::uint64_t* row, std::int64_t k) {
  row[k >> 6] &= ~(std::uint64_t{1} << (k & 63));
}
/// Sets bits [begin, end) of a row.
void set_bits(std::uint64_t* row, std::int64_t begin, std::int64_t end);
/// Clears bits [begin, end) of a row.
void clear_bits(std::uint64_t* row, std::int64_t begin, std::int64_t end);

}  // namespace ryle
