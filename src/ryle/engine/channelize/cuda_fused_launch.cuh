// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

#include "ryle/engine/channelize/cuda_fused.cuh"
#include "ryle/engine/channelize/problem.hpp"

namespace ryle::channelize::detail {

/// Radices of the fused kernel's transform; r1 = 0: the configuration is not one it has.
struct FusedPlan {
  int r1 = 0;
  int r2 = 0;
  bool applies() const { return r1 > 0; }
};
/// For 8-bit complex samples, critically sampled, 4 or 8 taps, 128, 256, 512 or 1,024 channels, ci8
/// or ci4 out. Raises the shared-memory limit of the kernels it chooses, on the current device.
FusedPlan plan_fused(const Problem& problem, int shared_limit_bytes);

/// @pre a.samples is 2-byte aligned, a.blocks 16-byte aligned in all strides
void launch_fused(const FusedArguments& a, int n_points, int n_taps, std::int64_t n_units,
                  cudaStream_t stream);

}  // namespace ryle::channelize::detail
