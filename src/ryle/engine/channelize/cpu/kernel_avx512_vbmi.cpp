// SPDX-License-Identifier: BSD-3-Clause
// The channelizer on AVX-512 with VBMI2 and VNNI, vectors of 16 floats: cpu/kernel_run.inc.hpp has
// equation and layout, cpu/kernel_digits.inc.hpp the filter in integers that only this file has.
#include "ryle/engine/channelize/cpu/kernel.hpp"
#include "ryle/simd/unroll.hpp"

#include <type_traits>

#include <immintrin.h>
namespace ryle::channelize::detail {
namespace {

constexpr int kLanes = 16, kVectorBytes = 4 * kLanes;

#include "ryle/engine/channelize/cpu/kernel_parts.inc.hpp"

}  // namespace

const KernelTable& kernel_avx512_vbmi() {
  static constexpr KernelTable table{kLanes,      true,         scratch_bytes, run,          flush,
                                     kWordInputs, unpack_words, arrange_rows,  arrange_words};
  return table;
}

}  // namespace ryle::channelize::detail
