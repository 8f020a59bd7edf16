// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/device/free_memory.hpp"

#include "ryle/device/back_end.hpp"

namespace ryle {

#ifndef RYLE_HAVE_CUDA
std::int64_t free_device_bytes(int) {
  throw DeviceError("no device memory: " + cuda_unavailable_reason());
}
#endif

}  // namespace ryle
