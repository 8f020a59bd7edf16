// SPDX-License-Identifier: BSD-3-Clause
// The correlator of floats on AVX-512: cpu/tile.hpp has equation and layout. A tile is 12 rows x 16
// columns. Products and sums are fp32 over one pass of 256 spectra, then go into double.
#include "ryle/engine/correlate/cpu/tile.hpp"

#if defined(__AVX512F__)
#include "ryle/engine/correlate/cpu/pack512.hpp"

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

// Eight words of 16 inputs at a time; the last panel, with absent inputs, word by word.
void pack(const Cells& cells, std::int64_t n_inputs, std::int64_t n_cells, std::uint8_t* panel,
          std::int32_t* sums_re, std::int32_t* sums_im) {
  if (n_inputs < 16) return pack_words<Floats>(cells, n_inputs, n_cells, panel, sums_re, sums_im);
  const __m512i sign = _mm512_set1_epi32(INT32_MIN);
  auto* to = reinterpret_cast<__m512i*>(panel);
  for (std::int64_t run = 0; run < 2 * n_cells; ++run, to += 24) {
    const std::uint8_t* from = cells.data + run / 2 * cells.cell_stride_bytes + run % 2 * 32;
    for (int block = 0; block < 2; ++block) {
      __m512i re[4];
      __m512i im[4];
      transpose_block(from + 16 * block, cells.input_stride_bytes, re);
      transpose_block(from + 64 + 16 * block, cells.input_stride_bytes, im);
      for (int k = 0; k < 4; ++k) {
        _mm512_store_si512(to + 4 * block + k, re[k]);
        _mm512_store_si512(to + 8 + 4 * block + k, im[k]);
        _mm512_store_si512(to + 16 + 4 * block + k, _mm512_xor_si512(re[k], sign));
      }
    }
  }
}

constexpr CpuKernel kFloats = make_kernel<Floats>("avx512", 8, pack);

}  // namespace

const CpuKernel* cpu_kernel_avx512_f32() { return &kFloats; }

}  // namespace ryle::correlate::detail
#else
namespace ryle::correlate::detail {
const CpuKernel* cpu_kernel_avx512_f32() { return nullptr; }
}  // namespace ryle::correlate::detail
#endif
