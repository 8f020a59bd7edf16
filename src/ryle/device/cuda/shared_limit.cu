// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/device/cuda/shared_limit.hpp"

#include "ryle/device/cuda/runtime.hpp"

namespace ryle::cuda {

int max_dynamic_shared(const void* kernel) {
  int device = 0;
  cudaFuncAttributes metadata{};
  RYLE_CUDA(cudaGetDevice(&device));
  RYLE_CUDA(cudaFuncGetAttributes(&metadata, kernel));
  return attribute_of(device, cudaDevAttrMaxSharedMemoryPerBlockOptin) -
         static_cast<int>(metadata.sharedSizeBytes);
}

void allow_all_shared(const void* kernel) {
  RYLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 max_dynamic_shared(kernel)));
}

}  // namespace ryle::cuda
