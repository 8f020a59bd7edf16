// SPDX-License-Identifier: BSD-3-Clause
// AVX-512: 64 bytes a register.
#include "ryle/engine/search/cpu_kernel.hpp"

#if defined(__AVX512BW__)
#include <immintrin.h>

#include "ryle/engine/search/cpu_make.inc.hpp"

namespace ryle::search::detail {
namespace {

struct Avx512 {
  using Type = __m512i;
  static constexpr std::int64_t kBytes = 64;
  static constexpr int kTrials = 4;
  static Type load(const void* from) { return _mm512_loadu_si512(from); }
  static void store(void* to, Type x) { _mm512_storeu_si512(to, x); }
  /// Keeps gcc from loading twice what two operations use.
  static void pin(Type& x) { asm("" : "+v"(x)); }
  static Type zero() { return _mm512_setzero_si512(); }
  static Type all16(std::uint16_t x) { return _mm512_set1_epi16(static_cast<short>(x)); }
  static Type add8(Type a, Type b) { return _mm512_add_epi8(a, b); }
  static Type add16(Type a, Type b) { return _mm512_add_epi16(a, b); }
  static Type sub16(Type a, Type b) { return _mm512_sub_epi16(a, b); }
  static Type high_bytes(Type x) { return _mm512_srli_epi16(x, 8); }
  static Type bytes_up(Type x) { return _mm512_slli_epi16(x, 8); }
  static Type add_saturated(Type a, Type b) { return _mm512_adds_epu16(a, b); }
  static Type subtract_saturated(Type a, Type b) { return _mm512_subs_epu16(a, b); }
  static Type either(Type a, Type b) { return _mm512_or_si512(a, b); }
  static bool any(Type x) { return _mm512_test_epi64_mask(x, x) != 0; }
  /// Even and odd samples back in order.
  static void in_order(Type even, Type odd, Type& low, Type& high) {
    const Type pick = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8,
                                       39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    low = _mm512_permutex2var_epi16(even, pick, odd);
    high = _mm512_permutex2var_epi16(even, _mm512_add_epi16(pick, _mm512_set1_epi16(16)), odd);
  }
};

constexpr CpuKernel kKernel = make_kernel<Avx512>("avx512");

}  // namespace

const CpuKernel* cpu_kernel_avx512() { return &kKernel; }

}  // namespace ryle::search::detail
#else
namespace ryle::search::detail {
const CpuKernel* cpu_kernel_avx512() { return nullptr; }
}  // namespace ryle::search::detail
#endif
