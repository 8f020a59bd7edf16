// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "bench/levels/level.cuh"

namespace ryle::correlate::levels {

constexpr int kWgmmaInputs = 128;   // along an edge of a thread block's tile
constexpr int kWgmmaThreads = 256;  // two warpgroups, of 64 rows each
constexpr int kWgmmaStages = 5;
constexpr unsigned kWgmmaTileBytes = kWgmmaInputs * 128;
constexpr int kWgmmaSharedBytes = kWgmmaStages * 2 * kWgmmaTileBytes + 1024;  // to align

/// 128 cells of one block to shared memory, their pieces exchanged as the tensor unit wants them;
/// inputs beyond the last are zeros.
__device__ inline void copy_tile(unsigned to, const Gulp& gulp, const std::byte* block,
                                 int first_input) {
#pragma unroll
  for (int k = 0; k < kWgmmaInputs * 8 / kWgmmaThreads; ++k) {
    const int at = static_cast<int>(threadIdx.x) + k * kWgmmaThreads;
    const int row = at / 8;
    const int piece = at % 8;
    const bool exists = first_input + row < gulp.n_inputs;
    const std::byte* from =
        block + (exists ? first_input + row : 0) * gulp.input_stride_bytes + 16 * piece;
    cuda::copy_16(to + static_cast<unsigned>(row * 128 + ((piece ^ (row & 7)) << 4)), from,
                  exists ? 16 : 0);
  }
}

/// Tiles of 128 x 128 inputs on Hopper's asynchronous tensor units (sm_90a): a warpgroup holds 64 x
/// 128 products and reads both operands from a ring in shared memory that asynchronous copies fill
/// three blocks ahead; a barrier a block keeps the ring in step. What else the chip offers (copies
/// of boxes, warps that only load, thread blocks that stay) is left to the correlator itself.
/// @pre blocks {triangle of tiles, channels}, threads {kWgmmaThreads}, kWgmmaSharedBytes
__global__ void __launch_bounds__(kWgmmaThreads) correlate_wgmma(Gulp gulp, int2* sums) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || !defined(__CUDACC__)
  const auto [column, row] = detail::tile_of(static_cast<int>(blockIdx.x));
  const int first_row = row * kWgmmaInputs;
  const int first_column = column * kWgmmaInputs;
  const int channel = static_cast<int>(blockIdx.y);
  const unsigned t = threadIdx.x;
  const unsigned ring = (cuda::shared_address(cuda::dynamic_shared()) + 1023) / 1024 * 1024;
  const auto stage = [&](int block) {
    return ring + static_cast<unsigned>(block % kWgmmaStages) * 2 * kWgmmaTileBytes;
  };
  const bool diagonal = row == column;  // rows are columns
  const auto fetch = [&](int block) {
    if (block < gulp.n_blocks) {
      const std::byte* from = cell(gulp, channel, block, 0);
      copy_tile(stage(block), gulp, from, first_row);
      if (!diagonal) copy_tile(stage(block) + kWgmmaTileBytes, gulp, from, first_column);
    }
    cuda::commit_copies();  // also when empty: waits count groups
  };

  int re[64] = {};
  int plus[64] = {};   // re_j im_i
  int minus[64] = {};  // im_j re_i
  for (int block = 0; block < kWgmmaStages - 2; ++block) fetch(block);
  for (int block = 0; block < gulp.n_blocks; ++block) {
    cuda::wait_copies<kWgmmaStages - 3>();
    cuda::show_to_products();
    __syncthreads();  // the block is there for all, and all are done with the one before the last
    fetch(block + kWgmmaStages - 2);
    const unsigned rows = stage(block) + t / 128 * 64 * 128;
    const unsigned columns = stage(block) + (diagonal ? 0 : kWgmmaTileBytes);
    cuda::begin_products();
#pragma unroll
    for (unsigned half = 0; half < 128; half += 64) {  // bytes: re at 0, im at 32
      cuda::multiply_swizzled(re, rows + half, columns + half);
      cuda::multiply_swizzled(plus, rows + half, columns + half + 32);
      cuda::multiply_swizzled(re, rows + half + 32, columns + half + 32);
      cuda::multiply_swizzled(minus, rows + half + 32, columns + half);
    }
    cuda::end_products();
    cuda::wait_products<1>();
  }
  cuda::wait_products<0>();
  cuda::fence_registers(re);
  cuda::fence_registers(plus);
  cuda::fence_registers(minus);
#pragma unroll
  for (int k = 0; k < 64; ++k) {
    const auto j = static_cast<int>(t / 32 * 16 + t % 32 / 4) + k % 4 / 2 * 8;
    const auto i = static_cast<int>(t % 4 * 2) + k / 4 * 8 + k % 2;
    store(gulp, sums, channel, first_column + i, first_row + j, {re[k], plus[k] - minus[k]});
  }
#else
  __trap();  // not offered where has_warpgroup_products() says no
#endif
}

}  // namespace ryle::correlate::levels
