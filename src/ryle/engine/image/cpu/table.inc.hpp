// SPDX-License-Identifier: BSD-3-Clause
// The table of one instruction set. Included last.

constexpr CpuKernels kTable{kLanes,  kCellsPerUnit, field_run,   convert,     grid_baselines,
                            uv_rows, uv_columns,    kVisGroup,   kFieldGroup, phasors,
                            vis_sum, field_sum,     field_unpack};
