// SPDX-License-Identifier: BSD-3-Clause
// The correlator on AVX-VNNI, for CPUs without AVX-512: cpu/tile.hpp has equation and layout. A
// step is vpdpbusd (u8 x s8) on 256-bit registers, a tile is 6 rows x 8 columns.
#include "ryle/engine/correlate/cpu/tile.hpp"

#if defined(__AVXVNNI__)
#include <immintrin.h>

#include "ryle/engine/correlate/cpu/pack256.hpp"

namespace ryle::correlate::detail {
namespace {

struct Bytes : OffsetByteCell, Words256 {
  static constexpr int kMaxRows = 6;
  static Vec dot(Vec acc, Vec b, Vec a) { return _mm256_dpbusd_avx_epi32(acc, b, a); }
  static __m256i stored(__m256i x) { return _mm256_xor_si256(x, _mm256_set1_epi8(-128)); }
  static __m256i negative(__m256i x) { return _mm256_xor_si256(x, _mm256_set1_epi8(127)); }
  static __m256i sums(__m256i x) {
    return _mm256_dpbusd_avx_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), x);
  }
};

constexpr CpuKernel kBytes = make_kernel<Bytes>("avx_vnni", 8, pack_transposed<Bytes>);

}  // namespace

const CpuKernel* cpu_kernel_avx_vnni() { return &kBytes; }

}  // namespace ryle::correlate::detail
#else
namespace ryle::correlate::detail {
const CpuKernel* cpu_kernel_avx_vnni() { return nullptr; }
}  // namespace ryle::correlate::detail
#endif
