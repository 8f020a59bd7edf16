// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/device/cuda/warpgroup.cuh"

/// Thread blocks of a cluster on Hopper (sm_90a): barriers and shared memory of the other ones, and
/// copies that reach several. "There" is an address of address_in().
namespace ryle::cuda {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

__device__ inline unsigned cluster_rank() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
  return rank;
}
/// The address of this block in the shared memory of block `rank` of the cluster.
__device__ inline unsigned address_in(unsigned rank, unsigned address) {
  unsigned there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(there) : "r"(address), "r"(rank));
  return there;
}
/// What this thread stored before is seen by await_cluster_alone(). A fence, which takes long.
__device__ inline void arrive_there_with_stores(unsigned there) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];\n" ::"r"(there)
               : "memory");
}
/// Nothing but the arrival, for what was read.
__device__ inline void arrive_there(unsigned there) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];\n" ::"r"(there) : "memory");
}
__device__ inline void store_there(unsigned there, int value) {
  asm volatile("st.shared::cluster.u32 [%0], %1;\n" ::"r"(there), "r"(value) : "memory");
}
/// await_alone() that also sees what threads of other blocks stored before they arrived.
__device__ inline void await_cluster_alone(unsigned address, unsigned parity) {
  unsigned done = 0;
  do {
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}\n"
        : "=r"(done)
        : "r"(address), "r"(parity)
        : "memory");
  } while (done == 0);
}
/// Every thread of every block.
__device__ inline void synchronize_cluster() {
  asm volatile(
      "barrier.cluster.arrive.release;\n"
      "barrier.cluster.wait.acquire;\n" ::
          : "memory");
}
/// copy_box() into the same place of each block whose bit is set, counted at the same barrier
/// there.
__device__ inline void copy_box_to(unsigned blocks, unsigned to, const void* map, int x, int y,
                                   int z, int w, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], %7;\n" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w),
      "h"(static_cast<unsigned short>(blocks))
      : "memory");
}

#endif

}  // namespace ryle::cuda
