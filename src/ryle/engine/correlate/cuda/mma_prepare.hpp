// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/correlate/cuda/mma.cuh"

namespace ryle::correlate::mma {

/// Thread blocks of a kernel of kThreads threads that run at a time; sets its shared memory.
template <class Kernel>
std::int64_t prepare(Kernel* kernel, int device, const char* name) {
  RYLE_CUDA(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  int per_sm = 0;
  RYLE_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, kThreads, kSharedBytes));
  if (per_sm == 0) {
    throw DeviceError(std::string(name) +
                      " does not fit this device's shared memory; use cuda:simt");
  }
  return std::int64_t{per_sm} * cuda::attribute_of(device, cudaDevAttrMultiProcessorCount);
}

}  // namespace ryle::correlate::mma
