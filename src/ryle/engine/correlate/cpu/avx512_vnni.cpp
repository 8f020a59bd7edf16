// SPDX-License-Identifier: BSD-3-Clause
// The correlator on AVX-512 VNNI: cpu/tile.hpp has equation and layout. A step is vpdpbusd (u8 x
// s8), a tile is 12 rows x 16 columns: 24 sums in registers, 3 loads and 24 broadcasts per 48
// multiply instructions, so that the multiplications bind. Columns are stored as u8 x + 128.
#include "ryle/engine/correlate/cpu/tile.hpp"

#if defined(__AVX512VNNI__)
#include "ryle/engine/correlate/cpu/pack512.hpp"

namespace ryle::correlate::detail {
namespace {

struct Bytes : OffsetByteCell {
  using Vec = __m512i;
  static constexpr std::int64_t kColumns = 16;
  static constexpr int kMaxRows = 12;
  static Vec zero() { return _mm512_setzero_si512(); }
  static Vec load(const std::uint8_t* p) { return _mm512_load_si512(p); }
  static Vec broadcast(const std::uint8_t* p) {
    std::int32_t word;
    std::memcpy(&word, p, 4);
    return _mm512_set1_epi32(word);
  }
  static Vec dot(Vec acc, Vec b, Vec a) { return _mm512_dpbusd_epi32(acc, b, a); }
  static void add(std::int32_t* to, Vec re, Vec im) {
    _mm512_store_si512(to, _mm512_add_epi32(_mm512_load_si512(to), re));
    _mm512_store_si512(to + 16, _mm512_add_epi32(_mm512_load_si512(to + 16), im));
  }
};

void pack(const Cells& cells, std::int64_t n_inputs, std::int64_t n_cells, std::uint8_t* panel,
          std::int32_t* sums_re, std::int32_t* sums_im) {
  pack_bytes(cells, n_inputs, n_cells, panel, sums_re, sums_im, _mm512_set1_epi8(-128),
             _mm512_set1_epi8(127));
}

constexpr CpuKernel kBytes = make_kernel<Bytes>("avx512_vnni", 8, pack);

}  // namespace

const CpuKernel* cpu_kernel_avx512_vnni() { return &kBytes; }

}  // namespace ryle::correlate::detail
#else
namespace ryle::correlate::detail {
const CpuKernel* cpu_kernel_avx512_vnni() { return nullptr; }
}  // namespace ryle::correlate::detail
#endif
