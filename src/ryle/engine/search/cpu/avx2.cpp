// SPDX-License-Identifier: BSD-3-Clause
// The search on AVX2, 32 bytes a register; the loops with their equations are in cpu/*.inc.hpp.
#include "ryle/engine/search/cpu/kernel.hpp"

#if defined(__AVX2__)
#define RYLE_MM(operation) _mm256_##operation
#define RYLE_REGISTER __m256i
#include "ryle/engine/search/cpu/make.inc.hpp"
#include "ryle/engine/search/cpu/x86.inc.hpp"

namespace ryle::search::detail {
namespace {

struct Avx2 : X86 {
  static constexpr int kTrials = 2;
  static constexpr int kVectors = 2;  // of one trial
  static Type load(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
  }
  static void store(void* to, Type x) { _mm256_storeu_si256(static_cast<__m256i*>(to), x); }
  /// Keeps gcc from loading twice what two operations use.
  static void pin(Type& x) { asm("" : "+x"(x)); }
  static Type zero() { return _mm256_setzero_si256(); }
  static Type either(Type a, Type b) { return _mm256_or_si256(a, b); }
  static Type both(Type a, Type b) { return _mm256_and_si256(a, b); }
  static bool any(Type x) { return _mm256_testz_si256(x, x) == 0; }
  /// All ones where a <= b, unsigned words.
  static Type at_most(Type a, Type b) { return _mm256_cmpeq_epi16(_mm256_min_epu16(a, b), a); }
  static std::int64_t total32(Type x) {
    alignas(32) std::int32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), x);
    std::int64_t total = 0;
    for (const std::int32_t lane : lanes) total += lane;
    return total;
  }
  /// Words up to 255 to bytes, in order.
  static Type pack(Type low, Type high) {
    return _mm256_permute4x64_epi64(_mm256_packus_epi16(low, high), 0xd8);
  }
  static Type average_neighbors(Type low, Type high) {
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(average_pairs(low), average_pairs(high)),
                                    0xd8);
  }
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
