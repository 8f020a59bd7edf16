// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/device/on_device.hpp"

#include "ryle/device/back_end.hpp"

namespace ryle {

OnDevice::OnDevice(const Queue& queue) {
  if (queue.back_end() != BackEnd::cuda) return;
#ifdef RYLE_HAVE_CUDA
  previous_ = detail::enter_device_of(queue);
#endif
}

OnDevice::~OnDevice() {
#ifdef RYLE_HAVE_CUDA
  if (previous_ >= 0) detail::return_to_device(previous_);
#endif
}

bool same_memory(const Queue& a, const Queue& b) {
  return a.back_end() == b.back_end() && a.impl().device() == b.impl().device();
}

}  // namespace ryle
