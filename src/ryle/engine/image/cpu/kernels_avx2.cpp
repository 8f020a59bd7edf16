// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cpu/kernels.hpp"
#include "ryle/simd/unroll.hpp"

#include <immintrin.h>
#include <type_traits>
#include <utility>

namespace ryle::image::detail {
namespace {

constexpr int kLanes = 8, kVectorBytes = 4 * kLanes;

#include "ryle/engine/image/cpu/table.inc.hpp"

}  // namespace

const CpuKernels& cpu_kernels_avx2() { return kTable; }

}  // namespace ryle::image::detail
