// SPDX-License-Identifier: BSD-3-Clause
// AVX2: 32 bytes a register.
#include "ryle/engine/search/cpu_kernel.hpp"

#if defined(__AVX2__)
#include <immintrin.h>

#include "ryle/engine/search/cpu_make.inc.hpp"

namespace ryle::search::detail {
namespace {

struct Avx2 {
  using Type = __m256i;
  static constexpr std::int64_t kBytes = 32;
  static constexpr int kTrials = 2;
  static Type load(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
  }
  static void store(void* to, Type x) { _mm256_storeu_si256(static_cast<__m256i*>(to), x); }
  /// Keeps gcc from loading twice what two operations use.
  static void pin(Type& x) { asm("" : "+x"(x)); }
  static Type zero() { return _mm256_setzero_si256(); }
  static Type all16(std::uint16_t x) { return _mm256_set1_epi16(static_cast<short>(x)); }
  static Type add8(Type a, Type b) { return _mm256_add_epi8(a, b); }
  static Type add16(Type a, Type b) { return _mm256_add_epi16(a, b); }
  static Type sub16(Type a, Type b) { return _mm256_sub_epi16(a, b); }
  static Type high_bytes(Type x) { return _mm256_srli_epi16(x, 8); }
  static Type bytes_up(Type x) { return _mm256_slli_epi16(x, 8); }
  static Type add_saturated(Type a, Type b) { return _mm256_adds_epu16(a, b); }
  static Type subtract_saturated(Type a, Type b) { return _mm256_subs_epu16(a, b); }
  static Type either(Type a, Type b) { return _mm256_or_si256(a, b); }
  static bool any(Type x) { return _mm256_testz_si256(x, x) == 0; }
  /// Even and odd samples back in order.
  static void in_order(Type even, Type odd, Type& low, Type& high) {
    const Type a = _mm256_unpacklo_epi16(even, odd), b = _mm256_unpackhi_epi16(even, odd);
    low = _mm256_permute2x128_si256(a, b, 0x20);
    high = _mm256_permute2x128_si256(a, b, 0x31);
  }
};

constexpr CpuKernel kKernel = make_kernel<Avx2>("avx2");

}  // namespace

const CpuKernel* cpu_kernel_avx2() { return &kKernel; }

}  // namespace ryle::search::detail
#else
namespace ryle::search::detail {
const CpuKernel* cpu_kernel_avx2() { return nullptr; }
}  // namespace ryle::search::detail
#endif
