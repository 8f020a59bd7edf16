// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

#include "ryle/engine/channelize/cuda/fused.cuh"
#include "ryle/engine/channelize/problem.hpp"

namespace ryle::channelize::detail {

/// Radices of the fused kernel's transform; r1 = 0: the configuration is not one it has.
struct FusedPlan {
  int r1 = 0;
  int r2 = 0;
  int groups_per_sm = 0;  ///< thread blocks that a multiprocessor runs at a time
  bool applies() const { return r1 > 0; }
};
/// For 8-bit complex samples, critically sampled, 4 or 8 taps, 128, 256, 512 or 1,024 channels, ci8
/// or ci4 out. Raises the shared-memory limit of the kernels it chooses, on the current device.
FusedPlan plan_fused(const Problem& problem, int shared_limit_bytes);

/// Chooses blocks_per_group.
/// @pre a.blocks is 16-byte aligned in all strides
void launch_fused(FusedArguments a, const FusedPlan& plan, int n_points, int n_taps, int n_sm,
                  cudaStream_t stream);

}  // namespace ryle::channelize::detail
