// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda.h>

#include "ryle/engine/correlate/cuda/kernels.cuh"

namespace ryle::correlate::detail {

/// Boxes of 128 bytes x 128 inputs (halves: x 64; paired: 64 inputs x 2 channels) of a gulp,
/// swizzled; inputs and channels beyond the last one are 0. fetch_bytes: of CudaTuning. Throws
/// DeviceError for strides no map holds.
CUtensorMap wgmma_map(const wgmma::Layout& layout, const CudaGulp& gulp, bool halves,
                      int fetch_bytes);

}  // namespace ryle::correlate::detail
