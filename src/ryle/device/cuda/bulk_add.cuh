// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_runtime_api.h>

/// Hopper's bulk additions from shared to global memory (sm_90a); what they take is shown to them
/// as to products (kernel.cuh).
namespace ryle::cuda {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// to[k] += from[k], n_bytes (of 16) of them; one group of this thread.
__device__ inline void add_bulk(int* to, unsigned from, unsigned n_bytes) {
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;\n"
      "cp.async.bulk.commit_group;\n" ::"l"(to),
      "r"(from), "r"(n_bytes)
      : "memory");
}
__device__ inline void add_bulk(float* to, unsigned from, unsigned n_bytes) {
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;\n"
      "cp.async.bulk.commit_group;\n" ::"l"(to),
      "r"(from), "r"(n_bytes)
      : "memory");
}
/// All but the last kPending groups of this thread have read their shared memory.
template <int kPending>
__device__ inline void wait_bulk_reads() {
  asm volatile("cp.async.bulk.wait_group.read %0;\n" ::"n"(kPending) : "memory");
}

#endif

}  // namespace ryle::cuda
