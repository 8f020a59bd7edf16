// SPDX-License-Identifier: BSD-3-Clause
// The channelizer on AVX2, vectors of 8 floats: cpu/kernel_run.inc.hpp has equation and layout.
#include "ryle/engine/channelize/cpu/kernel.hpp"

#include <type_traits>

#include <immintrin.h>
namespace ryle::channelize::detail {
namespace {

constexpr int kLanes = 8;

// Each file builds on the one before it.
// clang-format off
#include "ryle/engine/channelize/cpu/kernel_lanes.inc.hpp"
#include "ryle/engine/channelize/cpu/kernel_transform.inc.hpp"
#include "ryle/engine/channelize/cpu/kernel_filter.inc.hpp"
#include "ryle/engine/channelize/cpu/kernel_finish.inc.hpp"
#include "ryle/engine/channelize/cpu/kernel_unpack.inc.hpp"
#include "ryle/engine/channelize/cpu/kernel_digits.inc.hpp"
#include "ryle/engine/channelize/cpu/kernel_run.inc.hpp"
#include "ryle/engine/channelize/cpu/kernel_flush.inc.hpp"
// clang-format on

}  // namespace

const KernelTable& kernel_avx2() {
  static constexpr KernelTable table{kLanes,      false,        scratch_bytes, run,    flush,
                                     kWordInputs, unpack_words, nullptr,       nullptr};
  return table;
}

}  // namespace ryle::channelize::detail
