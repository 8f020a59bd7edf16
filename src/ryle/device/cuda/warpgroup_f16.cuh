// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/device/cuda/warpgroup.cuh"

/// Asynchronous products of a warpgroup, halves, fp32 sums in registers: between begin_products()
/// and end_products() of warpgroup.cuh. A product is exact; what it is added to is cut, not
/// rounded, to fp32.
namespace ryle::cuda {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

#define RYLE_4(k) "+f"(d[k]), "+f"(d[(k) + 1]), "+f"(d[(k) + 2]), "+f"(d[(k) + 3])
#define RYLE_16(k) RYLE_4(k), RYLE_4((k) + 4), RYLE_4((k) + 8), RYLE_4((k) + 12)

/// The first 64 registers of d (64 rows x 128 columns) += a (64 x 16, registers) b (16 x 128,
/// shared memory).
__device__ inline void multiply_128(float (&d)[64], const unsigned (&a)[4], std::uint64_t b) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, p, 1, 1, 0;\n}\n"
      : RYLE_16(0), RYLE_16(16), RYLE_16(32), RYLE_16(48)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

/// The first 32 registers of d (64 rows x 64 columns) += a (64 x 16, registers) b (16 x 64, shared
/// memory).
__device__ inline void multiply_64(float (&d)[64], const unsigned (&a)[4], std::uint64_t b) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, p, 1, 1, 0;\n}\n"
      : RYLE_16(0), RYLE_16(16)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

#undef RYLE_16
#undef RYLE_4

/// The asynchronous products write these registers: nothing is read before `wait`.
__device__ inline void fence_registers(float (&d)[64]) {
#pragma unroll
  for (int k = 0; k < 64; k += 4)
    asm volatile("" : "+f"(d[k]), "+f"(d[k + 1]), "+f"(d[k + 2]), "+f"(d[k + 3])::"memory");
}

#endif

}  // namespace ryle::cuda
