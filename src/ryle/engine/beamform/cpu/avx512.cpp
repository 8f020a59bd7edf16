// SPDX-License-Identifier: BSD-3-Clause
// The beamformer on AVX-512 without VNNI: cpu/kernel.hpp has equation and layout. Sums are fp32; a
// register tile is 8 spectra x 16 rows, 16 sums.
#include <type_traits>

#include "ryle/engine/beamform/cpu/kernel.hpp"
#include "ryle/simd/unroll.hpp"
#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

namespace ryle::beamform::detail {
#if defined(__AVX512BW__)
namespace {

constexpr int kWide = 16, kVectorBytes = 4 * kWide;
constexpr int kSpectra = 8;
constexpr int kPartsAtOnce = 1;
#include "ryle/engine/beamform/cpu/vector.inc.hpp"
// after it
#include "ryle/engine/beamform/cpu/u8_avx512.inc.hpp"

constexpr CpuKernel kFloat{"avx512",    false,           nullptr,         multiply_f32,
                           nullptr,     detect<false>,   integrate,       quantize,
                           quantize_u8, power_u8<false>, store_f32_lines, fence};

}  // namespace

const CpuKernel* cpu_kernel_avx512_f32() { return &kFloat; }
#else
const CpuKernel* cpu_kernel_avx512_f32() { return nullptr; }
#endif

}  // namespace ryle::beamform::detail
