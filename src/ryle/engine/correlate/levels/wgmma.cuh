// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/engine/correlate/levels/level.cuh"

/// For Hopper (sm_90a) and the device compiler only: asynchronous products cannot be run thread by
/// thread on the host. tests/cuda/levels_test.cpp checks them on a GPU.
#ifdef __CUDACC__
#include "ryle/device/cuda/warpgroup_s8.cuh"

namespace ryle::correlate::levels {

constexpr int kWgmmaInputs = 128;   // along an edge of a thread block's tile
constexpr int kWgmmaThreads = 256;  // two warpgroups, of 64 rows each
constexpr int kWgmmaStages = 5;
constexpr int kWgmmaTileBytes = kWgmmaInputs * 128;
constexpr int kWgmmaSharedBytes = kWgmmaStages * 2 * kWgmmaTileBytes + 1024;  // to align

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// A tile in shared memory, for the tensor unit: rows of 128 bytes whose 16-byte pieces are
/// exchanged by the row (128-byte swizzle), eight rows are 1024 bytes.
__device__ inline std::uint64_t operand(unsigned address) {
  return (address & 0x3ffffu) >> 4 | std::uint64_t{1} << 16 | std::uint64_t{1024 >> 4} << 32 |
         std::uint64_t{1} << 62;
}

#define RYLE_SUMS_4(d, k) "+r"(d[k]), "+r"(d[k + 1]), "+r"(d[k + 2]), "+r"(d[k + 3])
#define RYLE_SUMS_16(d, k) \
  RYLE_SUMS_4(d, k), RYLE_SUMS_4(d, k + 4), RYLE_SUMS_4(d, k + 8), RYLE_SUMS_4(d, k + 12)
/// d (64 rows x 128 columns) += a b over 32 spectra, by a warpgroup, some time.
__device__ inline void multiply_add(int (&d)[64], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
      "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, p;\n}\n"
      : RYLE_SUMS_16(d, 0), RYLE_SUMS_16(d, 16), RYLE_SUMS_16(d, 32), RYLE_SUMS_16(d, 48)
      : "l"(a), "l"(b));
}
#undef RYLE_SUMS_16
#undef RYLE_SUMS_4

/// 128 cells of one block to shared memory, without a register; inputs beyond the last are zeros.
__device__ inline void copy_tile(unsigned to, const Gulp& gulp, const std::byte* from,
                                 int first_input) {
#pragma unroll
  for (int k = 0; k < kWgmmaInputs * 8 / kWgmmaThreads; ++k) {
    const int at = static_cast<int>(threadIdx.x) + k * kWgmmaThreads;
    const int row = at / 8;
    const int piece = at % 8;
    const bool exists = first_input + row < gulp.n_inputs;
    const std::byte* source =
        from + (exists ? first_input + row : 0) * gulp.input_stride_bytes + 16 * piece;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(
                     to + row * 128 + ((piece ^ (row & 7)) << 4)),
                 "l"(source), "r"(exists ? 16 : 0)
                 : "memory");
  }
}

#endif

/// Tiles of 128 x 128 inputs on Hopper's asynchronous tensor units: a warpgroup holds 64 x 128
/// products and reads both operands from a ring in shared memory that cp.async fills three blocks
/// ahead; a barrier a block keeps the ring in step. What else the chip offers (tensor copies,
/// warps that only load, thread blocks that stay) is left to the correlator itself.
/// @pre blocks {triangle of tiles, channels}, threads {kWgmmaThreads}, kWgmmaSharedBytes
__global__ void __launch_bounds__(kWgmmaThreads) correlate_wgmma(Gulp gulp, int2* sums) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  const auto [column, row] = detail::tile_of(static_cast<int>(blockIdx.x));
  const int channel = static_cast<int>(blockIdx.y);
  const int t = static_cast<int>(threadIdx.x);
  const unsigned unaligned = cuda::shared_address(cuda::dynamic_shared());
  const unsigned ring = (unaligned + 1023) / 1024 * 1024;
  const bool diagonal = row == column;
  const auto stage = [&](int block) { return ring + block % kWgmmaStages * 2 * kWgmmaTileBytes; };
  const auto fetch = [&](int block) {
    if (block < gulp.n_blocks) {
      const std::byte* from = cell(gulp, channel, block, 0);
      copy_tile(stage(block), gulp, from, row * kWgmmaInputs);
      if (!diagonal) copy_tile(stage(block) + kWgmmaTileBytes, gulp, from, column * kWgmmaInputs);
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // also when empty: waits count groups
  };

  int re[64] = {};
  int plus[64] = {};   // re_j im_i
  int minus[64] = {};  // im_j re_i
  for (int block = 0; block < kWgmmaStages - 2; ++block) fetch(block);
  for (int block = 0; block < gulp.n_blocks; ++block) {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(kWgmmaStages - 3) : "memory");
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
    __syncthreads();  // the block is there for all, and all are done with the one before the last
    fetch(block + kWgmmaStages - 2);
    const std::uint64_t a = operand(stage(block) + t / 128 * 64 * 128);
    const std::uint64_t b = operand(stage(block) + (diagonal ? 0 : kWgmmaTileBytes));
    cuda::begin_products();
#pragma unroll
    for (int half = 0; half < 8; half += 4) {  // in units of 16 bytes: re at 0, im at 2
      multiply_add(re, a + half, b + half);
      multiply_add(plus, a + half, b + half + 2);
      multiply_add(re, a + half + 2, b + half + 2);
      multiply_add(minus, a + half + 2, b + half);
    }
    cuda::end_products();
    cuda::wait_products<1>();
  }
  cuda::wait_products<0>();
  cuda::settle(re);
  cuda::settle(plus);
  cuda::settle(minus);
#pragma unroll
  for (int k = 0; k < 64; ++k) {
    const int j = row * kWgmmaInputs + t / 32 * 16 + t % 32 / 4 + k % 4 / 2 * 8;
    const int i = column * kWgmmaInputs + k / 4 * 8 + t % 4 * 2 + k % 2;
    store(gulp, sums, channel, i, j, {re[k], plus[k] - minus[k]});
  }
#endif
}

}  // namespace ryle::correlate::levels
#endif
