// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// For .cu files, as runtime.hpp.
namespace ryle::cuda {

/// Lets a kernel be launched with all the dynamic shared memory that a block of the current device
/// can have. The limit belongs to the kernel, not to who launches it: set to what one engine needs,
/// it could be too low for another that is made before or works beside it.
void allow_all_shared(const void* kernel);
/// That memory, bytes.
int max_dynamic_shared(const void* kernel);

template <class... Arguments>
void allow_all_shared(void (*kernel)(Arguments...)) {
  allow_all_shared(reinterpret_cast<const void*>(kernel));
}

template <class... Arguments>
int max_dynamic_shared(void (*kernel)(Arguments...)) {
  return max_dynamic_shared(reinterpret_cast<const void*>(kernel));
}

}  // namespace ryle::cuda
