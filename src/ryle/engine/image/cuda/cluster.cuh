// SPDX-License-Identifier: BSD-3-Clause
// Thread blocks of a cluster (sm_90 and later) wait for each other and store into each other's
// shared memory. PTX, where the runtime's own calls make a thread wait for more than it must.
#pragma once

namespace ryle::image::detail {

// Split barrier of all blocks of a cluster: what was written (and read) before the one is there
// (and done) before what follows the other.
__device__ inline void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#endif
}
// For a thread that has only read what others write next: there is no store to wait for, but for
// the values, which are there when what was made of all of them is.
__device__ inline void cluster_arrive_after_reads(float made_of_x, float made_of_y) {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed;" ::"f"(made_of_x), "f"(made_of_y) : "memory");
#endif
}
__device__ inline void cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
}

__device__ inline unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// Where `pointer` lies in the shared memory of another block.
__device__ inline unsigned in_other_block(const void* pointer, unsigned other) {
  unsigned at = shared_address(pointer);
#if __CUDA_ARCH__ >= 900
  asm("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(at) : "r"(other));
#endif
  return at;
}

// A store there counts its bytes at a barrier there, which is all its reader has to wait for: no
// fence that waits for every store of the thread.
__device__ inline void store_remote(unsigned at, float4 v, unsigned arrival) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, "
      "[%5];" ::"r"(at),
      "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(arrival)
      : "memory");
#endif
}

__device__ inline void init_arrivals(unsigned long long* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

__device__ inline void expect_arrivals(unsigned long long* barrier, int bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
#endif
}

__device__ inline void wait_for_arrivals(unsigned long long* barrier, int phase) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .pred there;\n"
      "again_%=:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 there, [%0], %1;\n"
      "@!there bra again_%=;\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(phase)
      : "memory");
#endif
}

}  // namespace ryle::image::detail
