// SPDX-License-Identifier: BSD-3-Clause
// The beamformer in portable vectors of four floats: cpu/kernel.hpp has equation and layout.
#include <type_traits>

#include "ryle/engine/beamform/cpu/kernel.hpp"
#include "ryle/simd/unroll.hpp"

namespace ryle::beamform::detail {
namespace {

constexpr int kWide = 4, kVectorBytes = 4 * kWide;
constexpr int kSpectra = 2;
constexpr int kPartsAtOnce = 2;
#include "ryle/engine/beamform/cpu/vector.inc.hpp"

constexpr CpuKernel kFloat{"generic", false,    nullptr, multiply_f32, nullptr,   detect<false>,
                           integrate, quantize, nullptr, nullptr,      store_f32, nullptr};

}  // namespace

const CpuKernel* cpu_kernel_generic_f32() { return &kFloat; }

}  // namespace ryle::beamform::detail
