// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cpu_kernels.hpp"

#include <immintrin.h>
#include <type_traits>
#include <utility>

namespace ryle::image::detail {
namespace {

constexpr int kLanes = 16;

// Each file builds on the one before it.
// clang-format off
#include "ryle/engine/image/cpu_vector.inc.hpp"
#include "ryle/engine/image/cpu_transform.inc.hpp"
#include "ryle/engine/image/cpu_field.inc.hpp"
#include "ryle/engine/image/cpu_uv.inc.hpp"
#include "ryle/engine/image/cpu_sums.inc.hpp"
#include "ryle/engine/image/cpu_table.inc.hpp"
// clang-format on

}  // namespace

const CpuKernels& cpu_kernels_avx512() { return kTable; }

}  // namespace ryle::image::detail
