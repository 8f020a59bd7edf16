// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What a kernel calls that plain C++ has not. Kernels that go through these functions, and include
/// no header of CUDA, also compile for the host, where tests run them thread by thread
/// (tests/support/simt); there cuda_names.hpp defines the same functions.
#ifdef __CUDACC__
#include "ryle/device/cuda/warpgroup_products.cuh"

namespace ryle::cuda {

/// Shared memory of the block that holds one T, one for each type a kernel asks for. T needs no
/// construction; nothing is initialised.
template <class T>
__device__ inline T& shared() {
  __shared__ T memory;
  return memory;
}

/// The shared memory whose size the launch gives; 128-byte aligned.
__device__ inline void* dynamic_shared() {
  extern __shared__ __align__(128) unsigned char ryle_dynamic_shared[];
  return ryle_dynamic_shared;
}

/// c += a b by the whole warp: mma.sync m16n8k32, s8 x s8 -> s32, modulo 2^32. Lane l = 4 g + q
/// holds
///   a[0..3]  rows g, g + 8, g, g + 8; values 4 q .. 4 q + 3 of the first 16, 16, last 16, 16
///   b[0..1]  column g; values 4 q .. 4 q + 3 of the first and of the last 16
///   c[0..3]  row g: columns 2 q, 2 q + 1; row g + 8: the same
__device__ inline void multiply_add_s8(int (&c)[4], const unsigned (&a)[4],
                                       const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, {%0, %1, %2, %3};\n"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// c += a b by the whole warp: mma.sync m16n8k16, halves, sums cut to fp32. The bytes of a and b
/// are those of multiply_add_s8, two to a half; c as there.
__device__ inline void multiply_add_f16(float (&c)[4], const unsigned (&a)[4],
                                        const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, {%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// Four matrices of 8 rows of 16 bytes: lane 8 m + k gives the address of row k of matrix m; r[m]
/// is bytes 4 (l % 4) .. of row l / 4 in lane l.
__device__ inline void load_matrices(unsigned (&r)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

__device__ inline unsigned load_shared(unsigned address) {
  unsigned word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address));
  return word;
}
__device__ inline uint4 load_shared_16(unsigned address) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address));
  return v;
}

/// 16 bytes from global to shared memory without a register, some time; only the first n_bytes are
/// read, the others become 0.
__device__ inline void copy_16(unsigned to, const void* from, int n_bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(n_bytes)
               : "memory");
}
/// Ends a group of copies.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
/// All but the last kPending groups of this thread are done.
template <int kPending>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// What this thread wrote to shared memory is seen by asynchronous products, after a barrier.
__device__ inline void show_to_products() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

/// d (64 rows x 128 columns) += a b over 32 values by a warpgroup, some time after
/// begin_products() (warpgroup.cuh). Both operands lie in shared memory: rows of 128 bytes whose
/// 16-byte pieces are exchanged by the number of the row (piece ^ row % 8), tiles aligned to 1024
/// bytes; an address points at the first row's 32 bytes. Thread 32 w + 4 g + q of the warpgroup
/// holds in d[4 n + 2 h + e] row 16 w + g + 8 h, column 8 n + 2 q + e.
__device__ inline void multiply_swizzled(int (&d)[64], unsigned rows, unsigned columns) {
  const auto operand = [](unsigned address) {  // eight rows are 1024 bytes; 128-byte swizzle
    return (address & 0x3ffffu) >> 4 | std::uint64_t{1} << 16 | std::uint64_t{1024 >> 4} << 32 |
           std::uint64_t{1} << 62;
  };
#define RYLE_4(k) "+r"(d[k]), "+r"(d[k + 1]), "+r"(d[k + 2]), "+r"(d[k + 3])
#define RYLE_16(k) RYLE_4(k), RYLE_4(k + 4), RYLE_4(k + 8), RYLE_4(k + 12)
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
      "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, p;\n}\n"
      : RYLE_16(0), RYLE_16(16), RYLE_16(32), RYLE_16(48)
      : "l"(operand(rows)), "l"(operand(columns)));
#undef RYLE_16
#undef RYLE_4
}

#endif

}  // namespace ryle::cuda
#endif
