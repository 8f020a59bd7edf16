// SPDX-License-Identifier: BSD-3-Clause
// The channelizer on AVX2, vectors of 8 floats: cpu/kernel_run.inc.hpp has equation and layout.
#include "ryle/engine/channelize/cpu/kernel.hpp"
#include "ryle/simd/unroll.hpp"

#include <type_traits>

#include <immintrin.h>
namespace ryle::channelize::detail {
namespace {

constexpr int kLanes = 8, kVectorBytes = 4 * kLanes;

#include "ryle/engine/channelize/cpu/kernel_parts.inc.hpp"

}  // namespace

const KernelTable& kernel_avx2() {
  static constexpr KernelTable table{kLanes,      false,        scratch_bytes, run,    flush,
                                     kWordInputs, unpack_words, nullptr,       nullptr};
  return table;
}

}  // namespace ryle::channelize::detail
