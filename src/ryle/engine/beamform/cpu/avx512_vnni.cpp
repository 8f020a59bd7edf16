// SPDX-License-Identifier: BSD-3-Clause
// The beamformer on AVX-512 VNNI: cpu/kernel.hpp has equation and layout. A step is vpdpbusd (u8 x
// s8). A register tile is 6 spectra x 32 rows (re, im): 24 sums, 10 loads per 24 multiply
// instructions. A block of 16 rows left alone takes 8 spectra: 10 loads per 16 multiply
// instructions.
#include <type_traits>

#include "ryle/engine/beamform/cpu/kernel.hpp"
#include "ryle/simd/unroll.hpp"
#if defined(__AVX512VNNI__)
#include <immintrin.h>
#endif

namespace ryle::beamform::detail {
#if defined(__AVX512VNNI__)
namespace {

constexpr int kWide = 16, kVectorBytes = 4 * kWide;
constexpr int kSpectra = 8;
constexpr int kPartsAtOnce = 1;
#include "ryle/engine/beamform/cpu/vector.inc.hpp"
// after it
#include "ryle/engine/beamform/cpu/u8_avx512.inc.hpp"

// Byte (re << 4 | im), two's complement -> bytes re + 8, im + 8: a nibble with its top bit flipped.
RYLE_INLINE __m512i expanded(__m256i bytes) {
  const __m512i x = _mm512_cvtepu8_epi16(bytes);
  const __m512i im = _mm512_and_si512(_mm512_slli_epi16(x, 8), _mm512_set1_epi16(0x0f00));
  return _mm512_xor_si512(_mm512_or_si512(_mm512_srli_epi16(x, 4), im), _mm512_set1_epi16(0x0808));
}

// 64 bytes: nibbles apart first, then in turns; words of 8 bytes are laid so that unpacking, which
// stays within 128 bits, leaves the order of time.
RYLE_INLINE void expand_line(const std::uint8_t* from, std::uint8_t* to) {
  const __m512i order = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0);
  const __m512i nibble = _mm512_set1_epi8(0x0f);
  const __m512i x = _mm512_permutexvar_epi64(
      order, _mm512_xor_si512(_mm512_loadu_si512(from), _mm512_set1_epi8(static_cast<char>(0x88))));
  const __m512i re = _mm512_and_si512(_mm512_srli_epi16(x, 4), nibble);
  const __m512i im = _mm512_and_si512(x, nibble);
  _mm512_storeu_si512(to, _mm512_unpacklo_epi8(re, im));
  _mm512_storeu_si512(to + 64, _mm512_unpackhi_epi8(re, im));
}

inline void expand4(const Expand& e) {
  for (std::int64_t row = 0; row < e.n_rows; ++row) {
    const std::uint8_t* from = e.from + row * e.from_stride_bytes;
    std::uint8_t* to = e.to + row * e.to_stride_bytes;
    std::int64_t k = 0;
    for (; k + 64 <= e.n_bytes; k += 64) {
      // The same place of the next heap of 32 antennas: the prefetcher does not see that stride.
      _mm_prefetch(reinterpret_cast<const char*>(from + k + 4096), _MM_HINT_T0);
      expand_line(from + k, to + 2 * k);
    }
    for (; k + 32 <= e.n_bytes; k += 32)
      _mm512_storeu_si512(to + 2 * k, expanded(load_as<__m256i>(from + k)));
    if (k == e.n_bytes) continue;
    const __mmask32 there = (__mmask32{1} << (e.n_bytes - k)) - 1;
    _mm512_mask_storeu_epi16(to + 2 * k, there, expanded(_mm256_maskz_loadu_epi8(there, from + k)));
  }
}

inline void multiply(const Multiply& m) {
  const auto* samples = static_cast<const std::uint8_t*>(m.samples);
  const __m512i start_re = _mm512_loadu_si512(m.start);
  const __m512i start_im = _mm512_loadu_si512(m.start + kLanes);
  const std::int64_t stride = m.spectrum_stride_bytes;
  for (std::int64_t t = 0; t < m.n_spectra; t += kGroup) {
    __m512i re[kGroup], im[kGroup];
    static_for<0, kGroup>([&](auto s) RYLE_ALWAYS {
      re[s] = start_re;
      im[s] = start_im;
    });
    const std::uint8_t* at = samples + t * stride;
    const auto* weights = static_cast<const std::uint8_t*>(m.weights);
    for (std::int64_t step = 0; step < m.n_steps; ++step) {
      const __m512i w_re = _mm512_loadu_si512(weights);
      const __m512i w_im = _mm512_loadu_si512(weights + 64);
      static_for<0, kGroup>([&](auto s) RYLE_ALWAYS {
        const __m512i x = _mm512_set1_epi32(load_as<std::int32_t>(at + s * stride));
        re[s] = _mm512_dpbusd_epi32(re[s], x, w_re);
        im[s] = _mm512_dpbusd_epi32(im[s], x, w_im);
      });
      weights += 128;
      at += m.step_stride_bytes;
    }
    auto* raw = static_cast<std::int32_t*>(m.raw) + 2 * t * kLanes;
    static_for<0, kGroup>([&](auto s) RYLE_ALWAYS {
      _mm512_storeu_si512(raw + 2 * s * kLanes, re[s]);
      _mm512_storeu_si512(raw + (2 * s + 1) * kLanes, im[s]);
    });
  }
}

// kCount spectra x 32 rows: every sample that is broadcast serves four instructions.
template <int kCount>
RYLE_INLINE void multiply_rows(const Multiply& m, std::int64_t t) {
  const std::int64_t stride = m.spectrum_stride_bytes;
  const auto* at = static_cast<const std::uint8_t*>(m.samples) + t * stride;
  const auto* first = static_cast<const std::uint8_t*>(m.weights);
  const auto* second = static_cast<const std::uint8_t*>(m.second_weights);
  __m512i sums[kCount][4];
  static_for<0, kCount>([&](auto s) RYLE_ALWAYS {
    sums[s][0] = _mm512_loadu_si512(m.start);
    sums[s][1] = _mm512_loadu_si512(m.start + kLanes);
    sums[s][2] = _mm512_loadu_si512(m.second_start);
    sums[s][3] = _mm512_loadu_si512(m.second_start + kLanes);
  });
  for (std::int64_t step = 0; step < m.n_steps; ++step) {
    const __m512i w[4] = {_mm512_loadu_si512(first), _mm512_loadu_si512(first + 64),
                          _mm512_loadu_si512(second), _mm512_loadu_si512(second + 64)};
    static_for<0, kCount>([&](auto s) RYLE_ALWAYS {
      const __m512i x = _mm512_set1_epi32(load_as<std::int32_t>(at + s * stride));
      static_for<0, 4>([&](auto v)
                           RYLE_ALWAYS { sums[s][v] = _mm512_dpbusd_epi32(sums[s][v], x, w[v]); });
    });
    first += 128;
    second += 128;
    at += m.step_stride_bytes;
  }
  auto* raw = static_cast<std::int32_t*>(m.raw) + 2 * t * kLanes;
  auto* other = static_cast<std::int32_t*>(m.second_raw) + 2 * t * kLanes;
  static_for<0, kCount>([&](auto s) RYLE_ALWAYS {
    _mm512_storeu_si512(raw + 2 * s * kLanes, sums[s][0]);
    _mm512_storeu_si512(raw + (2 * s + 1) * kLanes, sums[s][1]);
    _mm512_storeu_si512(other + 2 * s * kLanes, sums[s][2]);
    _mm512_storeu_si512(other + (2 * s + 1) * kLanes, sums[s][3]);
  });
}

inline void multiply_two(const Multiply& m) {
  std::int64_t t = 0;
  for (; t + 6 <= m.n_spectra; t += 6) multiply_rows<6>(m, t);
  // Groups are of 8: 2 or 4 are left.
  for (; t + 4 <= m.n_spectra; t += 4) multiply_rows<4>(m, t);
  for (; t < m.n_spectra; t += 2) multiply_rows<2>(m, t);
}

constexpr CpuKernel kBytes{"avx512_vnni", true,           expand4,         multiply,
                           multiply_two,  detect<true>,   integrate,       quantize,
                           quantize_u8,   power_u8<true>, store_f32_lines, fence};

}  // namespace

const CpuKernel* cpu_kernel_avx512_vnni() { return &kBytes; }
#else
const CpuKernel* cpu_kernel_avx512_vnni() { return nullptr; }
#endif

}  // namespace ryle::beamform::detail
