// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/device/cuda/kernel.cuh"
#include "ryle/device/cuda/product_tiles.hpp"
#include "ryle/engine/correlate/cuda/gulp.hpp"
#include "ryle/engine/correlate/cuda/tiles.cuh"

/// What the correlators on mma.sync share, whatever the samples are: 64 x 64 inputs a thread block,
/// rows (inputs j, operand A) and columns (inputs i, operand B) of one block in each of three
/// stages of shared memory, filled by asynchronous copies.
namespace ryle::correlate::mma {

inline constexpr int kRowBytes = 128;  ///< one block of one input
using Tiles = cuda::ProductTiles;
inline constexpr int kTile = Tiles::kTile;  ///< inputs along an edge of a thread block's tile
inline constexpr int kWarpRows = Tiles::kWarpRows;
inline constexpr int kWarpColumns = Tiles::kWarpColumns;

inline constexpr int kFragments = kWarpRows / 16;
inline constexpr int kWarpsAcross = Tiles::kWarpsAcross;
inline constexpr int kThreads = Tiles::kThreads;
inline constexpr int kStages = 3;
inline constexpr int kStageBytes = 2 * kTile * kRowBytes;
inline constexpr int kSharedBytes = kStages * kStageBytes;
inline constexpr int kBlocksPerSm = 4;  ///< 8 warps of 252 registers fill the register file
inline constexpr int kSumsPerThread = Tiles::kSumsPerThread;

/// Byte offset of 16-byte piece `piece` of row `row`: the xor keeps eight rows of one piece in
/// eight different banks.
__device__ inline int swizzled(int row, int piece) {
  return row * kRowBytes + ((piece ^ (row & 7)) << 4);
}

/// Where a lane reads its rows of both operands: the ldmatrix orders of A and B differ.
struct Lane {
  int a_row, a_half, b_row, b_half;
};
__device__ inline Lane lane_of(int warp_row, int warp_column) {
  const int lane = threadIdx.x % 32;
  return {warp_row + (lane & 15), lane >> 4, warp_column + (lane & 7) + ((lane >> 4) << 3),
          (lane >> 3) & 1};
}

__device__ inline void load_rows(unsigned to, const std::byte* base,
                                 std::int64_t input_stride_bytes, int first_input, int n_inputs) {
  constexpr int kPieces = kTile * (kRowBytes / 16);
#pragma unroll
  for (int k = 0; k < kPieces / kThreads; ++k) {
    const int index = threadIdx.x + k * kThreads;
    const int row = index / 8;
    const int piece = index % 8;
    const bool exists = first_input + row < n_inputs;
    const std::byte* from =
        base + (exists ? first_input + row : 0) * input_stride_bytes + piece * 16;
    cuda::copy_16(to + swizzled(row, piece), from, exists ? 16 : 0);
  }
}

/// multiply(rows, columns), shared-memory addresses, for every one of n_blocks blocks of a tile,
/// from `base` on.
template <class Multiply>
__device__ inline void for_each_block(unsigned shared, const detail::CudaGulp& gulp,
                                      const std::byte* base, int n_blocks,
                                      const detail::TileIndex& tile, const Multiply& multiply) {
  const bool diagonal = tile.column == tile.row;
  const auto fetch = [&](int block) {
    if (block < n_blocks) {
      const unsigned to = shared + block % kStages * kStageBytes;
      const std::byte* from = base + block * gulp.block_stride_bytes;
      load_rows(to, from, gulp.input_stride_bytes, tile.row * kTile, gulp.n_inputs);
      if (!diagonal) {
        load_rows(to + kTile * kRowBytes, from, gulp.input_stride_bytes, tile.column * kTile,
                  gulp.n_inputs);
      }
    }
    cuda::commit_copies();  // also when empty: the waits count groups
  };
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) fetch(stage);
  for (int block = 0; block < n_blocks; ++block) {
    cuda::wait_copies<kStages - 2>();
    __syncthreads();  // the block is visible to all, and all are done with the stage fetched into
                      // next
    fetch(block + kStages - 1);
    const unsigned rows = shared + block % kStages * kStageBytes;
    multiply(rows, diagonal ? rows : rows + kTile * kRowBytes);
  }
  cuda::wait_copies<0>();
}

}  // namespace ryle::correlate::mma
