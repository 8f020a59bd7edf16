// SPDX-License-Identifier: BSD-3-Clause
// The search on AVX-512, 64 bytes a register; the loops with their equations are in cpu/*.inc.hpp.
#include "ryle/engine/search/cpu/kernel.hpp"

#if defined(__AVX512BW__)
#define RYLE_MM(operation) _mm512_##operation
#define RYLE_REGISTER __m512i
#include "ryle/engine/search/cpu/make.inc.hpp"
#include "ryle/engine/search/cpu/x86.inc.hpp"

namespace ryle::search::detail {
namespace {

struct Avx512 : X86 {
  static constexpr int kTrials = 4;
  static constexpr int kVectors = 4;  // of one trial
  static Type load(const void* from) { return _mm512_loadu_si512(from); }
  static void store(void* to, Type x) { _mm512_storeu_si512(to, x); }
  /// Keeps gcc from loading twice what two operations use.
  static void pin(Type& x) { asm("" : "+v"(x)); }
  static Type zero() { return _mm512_setzero_si512(); }
  static Type either(Type a, Type b) { return _mm512_or_si512(a, b); }
  static Type both(Type a, Type b) { return _mm512_and_si512(a, b); }
  static bool any(Type x) { return _mm512_test_epi64_mask(x, x) != 0; }
  /// All ones where a <= b, unsigned words.
  static Type at_most(Type a, Type b) { return _mm512_movm_epi16(_mm512_cmple_epu16_mask(a, b)); }
  static std::int64_t total32(Type x) { return _mm512_reduce_add_epi64(wide_pairs(x)); }
  /// Words up to 255 to bytes, in order.
  static Type pack(Type low, Type high) { return ordered(_mm512_packus_epi16(low, high)); }
  static Type average_neighbors(Type low, Type high) {
    return ordered(_mm512_packus_epi32(average_pairs(low), average_pairs(high)));
  }
  /// Even and odd samples back in order.
  static void in_order(Type even, Type odd, Type& low, Type& high) {
    const Type pick = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8,
                                       39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    const Type first = _mm512_permutex2var_epi16(even, pick, odd);
    high = _mm512_permutex2var_epi16(even, _mm512_add_epi16(pick, _mm512_set1_epi16(16)), odd);
    low = first;
  }

 private:
  /// What packs within 128 bits leave apart.
  static Type ordered(Type x) {
    return _mm512_permutexvar_epi64(_mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), x);
  }
  /// Neighbouring signed 32-bit lanes added as 64 bits.
  static Type wide_pairs(Type x) {
    return _mm512_add_epi64(_mm512_srai_epi64(_mm512_slli_epi64(x, 32), 32),
                            _mm512_srai_epi64(x, 32));
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
