// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/device/on_device.hpp"

#include "ryle/device/back_end.hpp"
#include "ryle/device/cuda/runtime.hpp"

namespace ryle::detail {

int enter_device_of(const Queue& queue) {
  int previous = 0;
  RYLE_CUDA(cudaGetDevice(&previous));
  RYLE_CUDA(cudaSetDevice(cuda::device_of(queue)));
  return previous;
}

void return_to_device(int device) noexcept { static_cast<void>(cudaSetDevice(device)); }

}  // namespace ryle::detail
