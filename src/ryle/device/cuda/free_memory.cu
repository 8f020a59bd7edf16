// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/device/free_memory.hpp"

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/queue.hpp"

namespace ryle {

std::int64_t free_device_bytes(int cuda_device) {
  if (const std::string reason = cuda_unavailable_reason(); !reason.empty())
    throw DeviceError("no device memory: " + reason);
  const cuda::DeviceScope scope(cuda_device);
  std::size_t free_bytes = 0, total_bytes = 0;
  RYLE_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
  return static_cast<std::int64_t>(free_bytes);
}

}  // namespace ryle
