// SPDX-License-Identifier: BSD-3-Clause
// A whole kernel, inside the unnamed namespace of an instruction-set file, which has kLanes and
// kVectorBytes.

// Each file builds on the one before it.
// clang-format off
#include "ryle/simd/vector.inc.hpp"
#include "ryle/engine/channelize/cpu/kernel_lanes.inc.hpp"
#include "ryle/simd/fft.inc.hpp"
#include "ryle/engine/channelize/cpu/kernel_transform.inc.hpp"
#include "ryle/engine/channelize/cpu/kernel_filter.inc.hpp"
#include "ryle/engine/channelize/cpu/kernel_finish.inc.hpp"
#include "ryle/engine/channelize/cpu/kernel_unpack.inc.hpp"
#include "ryle/engine/channelize/cpu/kernel_digits.inc.hpp"
#include "ryle/engine/channelize/cpu/kernel_run.inc.hpp"
#include "ryle/engine/channelize/cpu/kernel_flush.inc.hpp"
// clang-format on
