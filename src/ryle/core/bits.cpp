// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/core/bits.hpp"

namespace ryle {
namespace {

template <class Apply>
void for_words(std::uint64_t* row, std::int64_t begin, std::int64_t end, Apply apply) {
  while (begin < end) {
    const std::int64_t word = begin >> 6;
    const std::int64_t stop = end < (word + 1) * 64 ? end : (word + 1) * 64;
    const std::int64_t count = stop - begin;
    const std::uint64_t ones = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    apply(row[word], ones << (begin & 63));
    begin = stop;
  }
}

}  // namespace

void set_bits(std::uint64_t* row, std::int64_t begin, std::int64_t end) {
  for_words(row, begin, end, [](std::uint64_t& word, std::uint64_t mask) { word |= mask; });
}

void clear_bits(std::uint64_t* row, std::int64_t begin, std::int64_t end) {
  for_words(row, begin, end, [](std::uint64_t& word, std::uint64_t mask) { word &= ~mask; });
}

}  // namespace ryle
