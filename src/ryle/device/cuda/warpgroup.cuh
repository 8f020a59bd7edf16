// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

/// Hopper's (sm_90a) barriers in shared memory, copies that report to them, and the frame around
/// asynchronous products of a warpgroup. For .cu files; the products themselves depend on shapes
/// and stay with the kernels.
namespace ryle::cuda {

__device__ inline unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

/// A phase of the barrier is complete after so many arrivals, and all bytes that were expected.
__device__ inline void begin_barrier(std::uint64_t* b, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(shared_address(b)), "r"(arrivals)
               : "memory");
}
/// After the last begin_barrier(), before __syncthreads().
__device__ inline void barriers_begun() {
  asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
}
__device__ inline void arrive(unsigned address) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(address) : "memory");
}
__device__ inline void arrive(std::uint64_t* b) { arrive(shared_address(b)); }
__device__ inline void arrive_and_expect(unsigned address, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(address), "r"(bytes)
               : "memory");
}
__device__ inline void arrive_and_expect(std::uint64_t* b, unsigned bytes) {
  arrive_and_expect(shared_address(b), bytes);
}
/// Waits for the phase of this parity (0 first; parity 1 of a new barrier has passed), in one
/// thread.
__device__ inline void await_alone(unsigned address, unsigned parity) {
  unsigned done = 0;
  do {
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}\n"
        : "=r"(done)
        : "r"(address), "r"(parity)
        : "memory");
  } while (done == 0);
}
/// The same by all threads of a warp, which go on together.
__device__ inline void await(unsigned address, unsigned parity) {
  await_alone(address, parity);
  __syncwarp();
}
__device__ inline void await(std::uint64_t* b, unsigned parity) {
  await(shared_address(b), parity);
}

/// n_bytes (of 16) of global memory to shared memory, counted at a barrier.
__device__ inline void copy_bulk(unsigned to, const void* from, unsigned n_bytes,
                                 unsigned barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];\n" ::"r"(to),
      "l"(from), "r"(n_bytes), "r"(barrier)
      : "memory");
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// The box of a tensor of four dimensions that begins at (x, y, z, w), counted at a barrier. What
/// lies outside of the tensor is 0, and its bytes count.
__device__ inline void copy_box(unsigned to, const void* map, int x, int y, int z, int w,
                                unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%3, %4, %5, %6}], [%2];\n" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

/// Registers written so far are operands of the products that follow.
__device__ inline void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}
__device__ inline void end_products() {
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}
/// All but the last kPending groups of products are done.
template <int kPending>
__device__ inline void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(kPending) : "memory");
}

#endif

}  // namespace ryle::cuda
