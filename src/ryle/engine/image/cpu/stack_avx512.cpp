// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <type_traits>

#include "ryle/engine/image/cpu/stack_kernels.hpp"
#include "ryle/simd/unroll.hpp"

namespace ryle::image::detail {
namespace {
constexpr int kVectorBytes = 64;
}
}  // namespace ryle::image::detail

#define RYLE_STACK_KERNELS stack_kernels_avx512
#include "ryle/engine/image/cpu/stack_table.inc.hpp"
