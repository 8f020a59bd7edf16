// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_runtime_api.h>

/// Private to the CUDA engines of this folder: pieces of 16 bytes on their way to shared memory.
namespace ryle::search::detail {

/// Zeros where the piece is not `inside`.
__device__ __forceinline__ void copy16(void* to, const void* from, bool inside) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(address), "l"(from),
               "r"(inside ? 16 : 0)
               : "memory");
}
/// What this thread copied has arrived.
__device__ __forceinline__ void wait_all() { asm volatile("cp.async.wait_all;\n" ::: "memory"); }

}  // namespace ryle::search::detail
