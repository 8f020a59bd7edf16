// SPDX-License-Identifier: BSD-3-Clause
// The correlator on AVX-VNNI, for CPUs without AVX-512: cpu/tile.hpp has equation and layout. A
// step is vpdpbusd (u8 x s8) on 256-bit registers, a tile is 6 rows x 8 columns.
#include "ryle/engine/correlate/cpu/expand.hpp"
#include "ryle/engine/correlate/cpu/tile.hpp"

#if defined(__AVXVNNI__)
#include <immintrin.h>

#include "ryle/engine/correlate/cpu/pack256.hpp"

namespace ryle::correlate::detail {
namespace {

struct Bytes : OffsetByteCell {
  using Vec = __m256i;
  static constexpr std::int64_t kColumns = 8;
  static constexpr int kMaxRows = 6;
  static Vec zero() { return _mm256_setzero_si256(); }
  static Vec load(const std::uint8_t* p) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(p));
  }
  static Vec broadcast(const std::uint8_t* p) {
    std::int32_t word;
    std::memcpy(&word, p, 4);
    return _mm256_set1_epi32(word);
  }
  static Vec dot(Vec acc, Vec b, Vec a) { return _mm256_dpbusd_avx_epi32(acc, b, a); }
  static void add(std::int32_t* to, Vec re, Vec im) {
    auto* p = reinterpret_cast<__m256i*>(to);
    _mm256_store_si256(p, _mm256_add_epi32(_mm256_load_si256(p), re));
    _mm256_store_si256(p + 1, _mm256_add_epi32(_mm256_load_si256(p + 1), im));
  }
  static __m256i stored(__m256i x) { return _mm256_xor_si256(x, _mm256_set1_epi8(-128)); }
  static __m256i negative(__m256i x) { return _mm256_xor_si256(x, _mm256_set1_epi8(127)); }
  static __m256i sums(__m256i x) {
    return _mm256_dpbusd_avx_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), x);
  }
};

constexpr CpuKernel kBytes{"avx_vnni",
                           false,
                           8,
                           128,
                           64,
                           3 * 16 * 32,
                           8,
                           512,
                           6,
                           -128,
                           -128,
                           -128,
                           -127,
                           expand_to_bytes,
                           pack_transposed<Bytes>,
                           multiply_panel<Bytes>,
                           nullptr,
                           nullptr};

}  // namespace

const CpuKernel* cpu_kernel_avx_vnni() { return &kBytes; }

}  // namespace ryle::correlate::detail
#else
namespace ryle::correlate::detail {
const CpuKernel* cpu_kernel_avx_vnni() { return nullptr; }
}  // namespace ryle::correlate::detail
#endif
