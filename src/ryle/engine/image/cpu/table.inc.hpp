// SPDX-License-Identifier: BSD-3-Clause
// All parts of the kernels and their table, inside the unnamed namespace of an instruction-set
// file, which has kLanes and kVectorBytes.

// Each file builds on the one before it.
// clang-format off
#include "ryle/simd/vector.inc.hpp"
#include "ryle/engine/image/cpu/vector.inc.hpp"
#include "ryle/simd/fft.inc.hpp"
#include "ryle/engine/image/cpu/transform.inc.hpp"
#include "ryle/engine/image/cpu/field.inc.hpp"
#include "ryle/engine/image/cpu/uv.inc.hpp"
#include "ryle/engine/image/cpu/sums.inc.hpp"
// clang-format on

// The table of one instruction set. Included last.

constexpr CpuKernels kTable{kLanes,  kCellsPerUnit, field_run,   convert,     grid_baselines,
                            uv_rows, uv_columns,    kVisGroup,   kFieldGroup, phasors,
                            vis_sum, field_sum,     field_unpack};
