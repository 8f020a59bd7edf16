// SPDX-License-Identifier: BSD-3-Clause
// AVX-512 for floats: fp32 products and sums over one pass of 256 spectra, then double.
#include "ryle/engine/correlate/cpu_expand.hpp"
#include "ryle/engine/correlate/cpu_tile.hpp"

#if defined(__AVX512F__)
#include <immintrin.h>

namespace ryle::correlate::detail {
namespace {

struct Floats : FloatCell {
  using Vec = __m512;
  static constexpr std::int64_t kColumns = 16;
  static constexpr int kMaxRows = 12;
  static Vec zero() { return _mm512_setzero_ps(); }
  static Vec load(const std::uint8_t* p) { return _mm512_load_ps(p); }
  static Vec broadcast(const std::uint8_t* p) {
    float value;
    std::memcpy(&value, p, 4);
    return _mm512_set1_ps(value);
  }
  static Vec dot(Vec acc, Vec b, Vec a) { return _mm512_fmadd_ps(b, a, acc); }
  static void add_half(double* to, __m256 x) {
    _mm512_store_pd(to, _mm512_add_pd(_mm512_load_pd(to), _mm512_cvtps_pd(x)));
  }
  static __m256 upper(__m512 x) {
    return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1));
  }
  static void add(double* to, Vec re, Vec im) {
    add_half(to, _mm512_castps512_ps256(re));
    add_half(to + 8, upper(re));
    add_half(to + 16, _mm512_castps512_ps256(im));
    add_half(to + 24, upper(im));
  }
};

constexpr CpuKernel kFloats{"avx512",
                            true,
                            16,
                            128,
                            16,
                            3 * 16 * 64,
                            8,
                            512,
                            12,
                            0,
                            0,
                            0,
                            0,
                            expand_to_floats,
                            pack_words<Floats>,
                            multiply_panel<Floats>, nullptr, nullptr};

}  // namespace

const CpuKernel* cpu_kernel_avx512_f32() { return &kFloats; }

}  // namespace ryle::correlate::detail
#else
namespace ryle::correlate::detail {
const CpuKernel* cpu_kernel_avx512_f32() { return nullptr; }
}  // namespace ryle::correlate::detail
#endif
