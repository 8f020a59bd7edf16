// SPDX-License-Identifier: BSD-3-Clause
// The channelizer on AVX-512, vectors of 16 floats: cpu/kernel_run.inc.hpp has equation and layout.
#include "ryle/engine/channelize/cpu/kernel.hpp"
#include "ryle/simd/unroll.hpp"

#include <type_traits>

#include <immintrin.h>
namespace ryle::channelize::detail {
namespace {

constexpr int kLanes = 16, kVectorBytes = 4 * kLanes;

#include "ryle/engine/channelize/cpu/kernel_parts.inc.hpp"

}  // namespace

const KernelTable& kernel_avx512() {
  static constexpr KernelTable table{kLanes,      true,         scratch_bytes, run,    flush,
                                     kWordInputs, unpack_words, nullptr,       nullptr};
  return table;
}

}  // namespace ryle::channelize::detail
