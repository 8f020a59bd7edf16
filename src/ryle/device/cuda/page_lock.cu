// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/device/page_lock.hpp"

#include <cuda_runtime.h>

namespace ryle {

PageLock::PageLock(void* memory, std::int64_t n_bytes) {
  if (memory == nullptr || n_bytes <= 0) return;
  const auto status =
      cudaHostRegister(memory, static_cast<std::size_t>(n_bytes), cudaHostRegisterDefault);
  if (status == cudaSuccess)
    memory_ = memory;
  else
    static_cast<void>(cudaGetLastError());  // no error of what follows
}

void PageLock::release() noexcept {
  if (memory_ != nullptr) static_cast<void>(cudaHostUnregister(memory_));
  memory_ = nullptr;
}

}  // namespace ryle
