// SPDX-License-Identifier: BSD-3-Clause
// The channelizer in portable vectors of 4 floats: cpu/kernel_run.inc.hpp has equation and layout.
#include "ryle/engine/channelize/cpu/kernel.hpp"
#include "ryle/simd/unroll.hpp"

#include <cmath>
#include <type_traits>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ryle::channelize::detail {
namespace {

constexpr int kLanes = 4, kVectorBytes = 4 * kLanes;

#include "ryle/engine/channelize/cpu/kernel_parts.inc.hpp"

}  // namespace

const KernelTable& kernel_generic() {
  static constexpr KernelTable table{kLanes,      false,        scratch_bytes, run,    flush,
                                     kWordInputs, unpack_words, nullptr,       nullptr};
  return table;
}

}  // namespace ryle::channelize::detail
