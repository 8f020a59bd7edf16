// SPDX-License-Identifier: BSD-3-Clause
// What AVX2 and AVX-512 spell alike: before it, RYLE_MM(operation) is _mm256_operation or
// _mm512_operation, and RYLE_REGISTER their register. ryle/simd/vector.inc.hpp has none of these:
// bytes and words with saturation, averages, high halves are the search's alone.
#pragma once
#include <immintrin.h>

#include <cstdint>

namespace ryle::search::detail {
namespace {

struct X86 {
  using Type = RYLE_REGISTER;
  static constexpr std::int64_t kBytes = sizeof(Type);
  static Type all16(std::uint16_t x) { return RYLE_MM(set1_epi16)(static_cast<short>(x)); }
  static Type all8(std::uint8_t x) { return RYLE_MM(set1_epi8)(static_cast<char>(x)); }
  static Type add8(Type a, Type b) { return RYLE_MM(add_epi8)(a, b); }
  static Type sub8(Type a, Type b) { return RYLE_MM(sub_epi8)(a, b); }
  static Type add16(Type a, Type b) { return RYLE_MM(add_epi16)(a, b); }
  static Type add32(Type a, Type b) { return RYLE_MM(add_epi32)(a, b); }
  static Type sub16(Type a, Type b) { return RYLE_MM(sub_epi16)(a, b); }
  static Type high_bytes(Type x) { return RYLE_MM(srli_epi16)(x, 8); }
  static Type bytes_up(Type x) { return RYLE_MM(slli_epi16)(x, 8); }
  template <int kLog>
  static Type times(Type x) {
    return RYLE_MM(slli_epi16)(x, kLog);
  }
  static Type average8(Type a, Type b) { return RYLE_MM(avg_epu8)(a, b); }
  static Type add_saturated8(Type a, Type b) { return RYLE_MM(adds_epu8)(a, b); }
  static Type subtract_saturated(Type a, Type b) { return RYLE_MM(subs_epu16)(a, b); }
  static Type subtract_saturated8(Type a, Type b) { return RYLE_MM(subs_epu8)(a, b); }
  static Type max8(Type a, Type b) { return RYLE_MM(max_epu8)(a, b); }
  static Type min16(Type a, Type b) { return RYLE_MM(min_epu16)(a, b); }
  /// Neighboring words averaged upwards, in the low half of 32 bits.
  static Type average_pairs(Type x) {
    return RYLE_MM(avg_epu16)(RYLE_MM(srli_epi32)(RYLE_MM(slli_epi32)(x, 16), 16),
                              RYLE_MM(srli_epi32)(x, 16));
  }
  /// High halves of 16 x 16 bits.
  static Type multiply_high(Type a, Type b) { return RYLE_MM(mulhi_epu16)(a, b); }
  /// 32-bit sums of two signed products.
  static Type sum_products(Type a, Type b) { return RYLE_MM(madd_epi16)(a, b); }
};

}  // namespace
}  // namespace ryle::search::detail
