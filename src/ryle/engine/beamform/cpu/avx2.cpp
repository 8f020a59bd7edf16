// SPDX-License-Identifier: BSD-3-Clause
// The beamformer on AVX2: cpu/kernel.hpp has equation and layout. Bytes: vpmaddubsw adds two
// products u8 x s8 with 16-bit saturation, so it is used only where it provably cannot saturate:
// |sum| <= 2 range 127 per step, steps_per_word of them (4-bit codes, range 15: 8 steps, 30 480 <
// 32 767). All else is fp32, 2 spectra x 16 rows.
#include <type_traits>

#include "ryle/engine/beamform/cpu/kernel.hpp"
#include "ryle/simd/unroll.hpp"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace ryle::beamform::detail {
#if defined(__AVX2__)
namespace {

constexpr int kWide = 8, kVectorBytes = 4 * kWide;
constexpr int kSpectra = 2;
constexpr int kPartsAtOnce = 2;
#include "ryle/engine/beamform/cpu/vector.inc.hpp"

inline void expand4(const Expand& e) {
  const __m256i low_nibble = _mm256_set1_epi16(0x0f00), flip = _mm256_set1_epi16(0x0808);
  for (std::int64_t row = 0; row < e.n_rows; ++row) {
    const std::uint8_t* from = e.from + row * e.from_stride_bytes;
    std::uint8_t* to = e.to + row * e.to_stride_bytes;
    std::int64_t k = 0;
    for (; k + 16 <= e.n_bytes; k += 16) {
      const __m256i x = _mm256_cvtepu8_epi16(load_as<__m128i>(from + k));
      const __m256i im = _mm256_and_si256(_mm256_slli_epi16(x, 8), low_nibble);
      store_as(to + 2 * k, _mm256_xor_si256(_mm256_or_si256(_mm256_srli_epi16(x, 4), im), flip));
    }
    for (; k < e.n_bytes; ++k) {
      to[2 * k] = static_cast<std::uint8_t>(from[k] >> 4 ^ 8);
      to[2 * k + 1] = static_cast<std::uint8_t>((from[k] & 15) ^ 8);
    }
  }
}

// Half a block (8 rows) x 4 spectra: 8 sums of 16 bits, added to 32 bits every steps_per_word.
inline void multiply_half(const Multiply& m, std::int64_t half) {
  const auto* samples = static_cast<const std::uint8_t*>(m.samples);
  const __m256i ones = _mm256_set1_epi16(1);
  constexpr int kAtOnce = 4;
  for (std::int64_t t = 0; t < m.n_spectra; t += kAtOnce) {
    __m256i re[kAtOnce], im[kAtOnce];
    for (int s = 0; s < kAtOnce; ++s) {
      re[s] = load_as<__m256i>(m.start + 8 * half);
      im[s] = load_as<__m256i>(m.start + kLanes + 8 * half);
    }
    for (std::int64_t step = 0; step < m.n_steps; step += m.steps_per_word) {
      const std::int64_t left = m.n_steps - step;
      const std::int64_t n = left < m.steps_per_word ? left : m.steps_per_word;
      const auto* weights = static_cast<const std::uint8_t*>(m.weights) + step * 128 + 32 * half;
      const std::uint8_t* at = samples + t * m.spectrum_stride_bytes + step * m.step_stride_bytes;
      __m256i re16[kAtOnce], im16[kAtOnce];
      static_for<0, kAtOnce>([&](auto s) RYLE_ALWAYS { re16[s] = im16[s] = __m256i{}; });
      for (std::int64_t k = 0; k < n; ++k) {
        const __m256i w_re = load_as<__m256i>(weights + 128 * k);
        const __m256i w_im = load_as<__m256i>(weights + 128 * k + 64);
        static_for<0, kAtOnce>([&](auto s) RYLE_ALWAYS {
          const __m256i x = _mm256_set1_epi32(
              load_as<std::int32_t>(at + k * m.step_stride_bytes + s * m.spectrum_stride_bytes));
          re16[s] = _mm256_add_epi16(re16[s], _mm256_maddubs_epi16(x, w_re));
          im16[s] = _mm256_add_epi16(im16[s], _mm256_maddubs_epi16(x, w_im));
        });
      }
      static_for<0, kAtOnce>([&](auto s) RYLE_ALWAYS {
        re[s] = _mm256_add_epi32(re[s], _mm256_madd_epi16(re16[s], ones));
        im[s] = _mm256_add_epi32(im[s], _mm256_madd_epi16(im16[s], ones));
      });
    }
    auto* raw = static_cast<std::int32_t*>(m.raw) + 2 * t * kLanes + 8 * half;
    for (int s = 0; s < kAtOnce; ++s) {
      store_as(raw + 2 * s * kLanes, re[s]);
      store_as(raw + (2 * s + 1) * kLanes, im[s]);
    }
  }
}

inline void multiply(const Multiply& m) {
  multiply_half(m, 0);
  multiply_half(m, 1);
}

constexpr CpuKernel kBytes{"avx2",    true,     expand4, multiply, nullptr,   detect<true>,
                           integrate, quantize, nullptr, nullptr,  store_f32, nullptr};
constexpr CpuKernel kFloat{"avx2",    false,    nullptr, multiply_f32, nullptr,   detect<false>,
                           integrate, quantize, nullptr, nullptr,      store_f32, nullptr};

}  // namespace

const CpuKernel* cpu_kernel_avx2() { return &kBytes; }
const CpuKernel* cpu_kernel_avx2_f32() { return &kFloat; }
#else
const CpuKernel* cpu_kernel_avx2() { return nullptr; }
const CpuKernel* cpu_kernel_avx2_f32() { return nullptr; }
#endif

}  // namespace ryle::beamform::detail
