// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_runtime_api.h>

/// A kernel that is launched with cudaLaunchAttributeProgrammaticStreamSerialization may begin
/// while the one before it in the stream ends, and sees its work from await_kernel_before() on.
/// Without the attribute neither does anything.
namespace ryle::cuda {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

__device__ inline void await_kernel_before() {
  asm volatile("griddepcontrol.wait;\n" ::: "memory");
}
/// When every thread block said so: the next kernel takes multiprocessors as they fall free.
__device__ inline void let_next_kernel_begin() {
  asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
}

#endif

}  // namespace ryle::cuda
