// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

/// Which lines of the second-level cache go first when it is full (sm_90a).
namespace ryle::cuda {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

__device__ inline std::uint64_t evicted_normally() {
  std::uint64_t policy;
  asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;\n" : "=l"(policy));
  return policy;
}
__device__ inline std::uint64_t evicted_first() {
  std::uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;\n" : "=l"(policy));
  return policy;
}

/// copy_box() of warpgroup.cuh with a policy.
__device__ inline void copy_box(unsigned to, const void* map, int x, int y, int z, int w,
                                unsigned barrier, std::uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%3, %4, %5, %6}], [%2], %7;\n" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w), "l"(policy)
      : "memory");
}

#endif

}  // namespace ryle::cuda
