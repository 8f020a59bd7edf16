// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cpu/kernels.hpp"

#include <type_traits>
#include <utility>

namespace ryle::image::detail {
namespace {

constexpr int kLanes = 4;

// Each file builds on the one before it.
// clang-format off
#include "ryle/engine/image/cpu/vector.inc.hpp"
#include "ryle/engine/image/cpu/transform.inc.hpp"
#include "ryle/engine/image/cpu/field.inc.hpp"
#include "ryle/engine/image/cpu/uv.inc.hpp"
#include "ryle/engine/image/cpu/sums.inc.hpp"
#include "ryle/engine/image/cpu/table.inc.hpp"
// clang-format on

}  // namespace

const CpuKernels& cpu_kernels_generic() { return kTable; }

}  // namespace ryle::image::detail
