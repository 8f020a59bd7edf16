// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/device/cuda/warpgroup.cuh"

/// Asynchronous products of a warpgroup with sums in registers, between begin_products() and
/// end_products() of warpgroup.cuh: signed bytes with int32 sums (K = 32), fp16 with fp32 sums
/// (K = 16; a product is exact; what it is added to is cut, not rounded, to fp32).
namespace ryle::cuda {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

#define RYLE_4(c, k) c(d[k]), c(d[(k) + 1]), c(d[(k) + 2]), c(d[(k) + 3])
#define RYLE_16(c, k) RYLE_4(c, k), RYLE_4(c, (k) + 4), RYLE_4(c, (k) + 8), RYLE_4(c, (k) + 12)
#define RYLE_FIRST_32                                                      \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define RYLE_NEXT_32                                                                 \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define RYLE_BEGIN "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\nwgmma.mma_async.sync.aligned."
#define RYLE_INPUTS "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)

// multiply_128: the first 64 registers of d (64 rows x 128 columns) += a (64 x K, registers) b (K x
// 128, shared memory). multiply_64: the first 32 registers (64 x 64) += a b (K x 64).
// fence_registers: the asynchronous products write these registers; nothing is read before the
// wait.
#define RYLE_PRODUCTS(T, c, types, tail)                                                         \
  __device__ inline void multiply_128(T(&d)[64], const unsigned(&a)[4], std::uint64_t b) {       \
    asm volatile(RYLE_BEGIN "m64n128" types " {" RYLE_FIRST_32 ", " RYLE_NEXT_32                 \
                            "}, {%64, %65, %66, %67}, %68, p" tail ";\n}\n"                      \
                 : RYLE_16(c, 0), RYLE_16(c, 16), RYLE_16(c, 32), RYLE_16(c, 48)                 \
                 : RYLE_INPUTS);                                                                 \
  }                                                                                              \
  __device__ inline void multiply_64(T(&d)[64], const unsigned(&a)[4], std::uint64_t b) {        \
    asm volatile(RYLE_BEGIN "m64n64" types " {" RYLE_FIRST_32                                    \
                            "}, {%32, %33, %34, %35}, %36, p" tail ";\n}\n"                      \
                 : RYLE_16(c, 0), RYLE_16(c, 16)                                                 \
                 : RYLE_INPUTS);                                                                 \
  }                                                                                              \
  __device__ inline void fence_registers(T(&d)[64]) {                                            \
    _Pragma("unroll") for (int k = 0; k < 64; k += 4) asm volatile("" : RYLE_4(c, k)::"memory"); \
  }

RYLE_PRODUCTS(int, "+r", "k32.s32.s8.s8", "")
RYLE_PRODUCTS(float, "+f", "k16.f32.f16.f16", ", 1, 1, 0")

#undef RYLE_PRODUCTS
#undef RYLE_INPUTS
#undef RYLE_BEGIN
#undef RYLE_NEXT_32
#undef RYLE_FIRST_32
#undef RYLE_16
#undef RYLE_4

#endif

}  // namespace ryle::cuda
