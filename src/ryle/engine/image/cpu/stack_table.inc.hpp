// SPDX-License-Identifier: BSD-3-Clause
// The w-stacking kernels of one instruction set, in float and in double. Included by
// cpu/stack_generic.cpp, stack_avx2.cpp and stack_avx512.cpp, which define kVectorBytes and
// RYLE_STACK_KERNELS.

namespace ryle::image::detail {
namespace {

namespace single {
// Each file builds on the one before it.
// clang-format off
using Real = float;
#include "ryle/engine/image/cpu/stack_vector.inc.hpp"
#include "ryle/simd/fft.inc.hpp"
#include "ryle/engine/image/cpu/transform.inc.hpp"
#include "ryle/engine/image/cpu/stack.inc.hpp"
// clang-format on
}  // namespace single

namespace twice {
// clang-format off
using Real = double;
#include "ryle/engine/image/cpu/stack_vector.inc.hpp"
#include "ryle/simd/fft.inc.hpp"
#include "ryle/engine/image/cpu/transform.inc.hpp"
#include "ryle/engine/image/cpu/stack.inc.hpp"
// clang-format on
}  // namespace twice

}  // namespace

template <>
const StackKernels<float>& RYLE_STACK_KERNELS<float>() {
  return single::kStackTable;
}
template <>
const StackKernels<double>& RYLE_STACK_KERNELS<double>() {
  return twice::kStackTable;
}

}  // namespace ryle::image::detail
