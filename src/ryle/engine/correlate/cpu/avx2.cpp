// SPDX-License-Identifier: BSD-3-Clause
// The correlator on AVX2 and FMA: cpu/tile.hpp has equation and layout. A step of integers is
// vpmaddwd on 16-bit copies, because the 8-bit vpmaddubsw saturates (5 rows x 8 columns); a step of
// floats is a fused multiply-add (6 rows x 8 columns).
#include "ryle/engine/correlate/cpu/tile.hpp"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

#include "ryle/engine/correlate/cpu/pack256.hpp"

namespace ryle::correlate::detail {
namespace {

struct Shorts : ShortCell, Words256 {
  static constexpr int kMaxRows = 5;
  // The empty statement keeps gcc 12 from multiplying eight steps ahead and adding later, which
  // spills every product.
  static Vec dot(Vec acc, Vec b, Vec a) {
    acc = _mm256_add_epi32(acc, _mm256_madd_epi16(b, a));
    asm("" : "+x"(acc));
    return acc;
  }
  static __m256i negative(__m256i x) { return _mm256_sub_epi16(_mm256_setzero_si256(), x); }
  static __m256i stored(__m256i x) { return x; }
  static __m256i sums(__m256i x) { return _mm256_madd_epi16(x, _mm256_set1_epi16(1)); }
};

struct Floats : FloatCell {
  using Vec = __m256;
  static constexpr std::int64_t kColumns = 8;
  static constexpr int kMaxRows = 6;
  static Vec zero() { return _mm256_setzero_ps(); }
  static Vec load(const std::uint8_t* p) {
    return _mm256_load_ps(reinterpret_cast<const float*>(p));
  }
  static Vec broadcast(const std::uint8_t* p) {
    return _mm256_broadcast_ss(reinterpret_cast<const float*>(p));
  }
  static Vec dot(Vec acc, Vec b, Vec a) { return _mm256_fmadd_ps(b, a, acc); }
  static void add_half(double* to, __m128 x) {
    _mm256_store_pd(to, _mm256_add_pd(_mm256_load_pd(to), _mm256_cvtps_pd(x)));
  }
  static void add(double* to, Vec re, Vec im) {
    add_half(to, _mm256_castps256_ps128(re));
    add_half(to + 4, _mm256_extractf128_ps(re, 1));
    add_half(to + 8, _mm256_castps256_ps128(im));
    add_half(to + 12, _mm256_extractf128_ps(im, 1));
  }
  static __m256i negative(__m256i x) { return _mm256_xor_si256(x, _mm256_set1_epi32(INT32_MIN)); }
  static __m256i stored(__m256i x) { return x; }
  static __m256i sums(__m256i) { return _mm256_setzero_si256(); }
};

constexpr CpuKernel kShorts = make_kernel<Shorts>("avx2", 8, pack_transposed<Shorts>);
constexpr CpuKernel kFloats = make_kernel<Floats>("avx2", 16, pack_transposed<Floats>);

}  // namespace

const CpuKernel* cpu_kernel_avx2() { return &kShorts; }
const CpuKernel* cpu_kernel_avx2_f32() { return &kFloats; }

}  // namespace ryle::correlate::detail
#else
namespace ryle::correlate::detail {
const CpuKernel* cpu_kernel_avx2() { return nullptr; }
const CpuKernel* cpu_kernel_avx2_f32() { return nullptr; }
}  // namespace ryle::correlate::detail
#endif
