// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What a kernel calls that plain C++ has not. Kernels that go through these functions, and include
/// no header of CUDA, also compile for the host, where tests run them thread by thread
/// (tests/support/simt); there cuda_names.hpp defines the same functions.
#ifdef __CUDACC__
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

}  // namespace ryle::cuda
#endif
