// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/device/cuda/product_tiles.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/correlate/cuda_kernels.cuh"
#include "ryle/engine/correlate/cuda_tiles.cuh"

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

__device__ inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// 16 bytes global to shared without a register; n_bytes = 0 writes zeros (inputs beyond the last
/// one).
__device__ inline void copy_16(unsigned to, const void* from, int n_bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(n_bytes)
               : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
template <int Pending>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(Pending) : "memory");
}

/// Byte offset of 16-byte piece `piece` of row `row`: the xor keeps eight rows of one piece in
/// eight different banks.
__device__ inline int swizzled(int row, int piece) {
  return row * kRowBytes + ((piece ^ (row & 7)) << 4);
}

__device__ inline void load_matrices(unsigned (&r)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
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
    copy_16(to + swizzled(row, piece), from, exists ? 16 : 0);
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
    commit_copies();  // also when empty: the waits count groups
  };
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) fetch(stage);
  for (int block = 0; block < n_blocks; ++block) {
    wait_copies<kStages - 2>();
    __syncthreads();  // the block is visible to all, and all are done with the stage fetched into
                      // next
    fetch(block + kStages - 1);
    const unsigned rows = shared + block % kStages * kStageBytes;
    multiply(rows, diagonal ? rows : rows + kTile * kRowBytes);
  }
  wait_copies<0>();
}

/// Thread blocks of a kernel of kThreads threads that run at a time; sets its shared memory.
template <class Kernel>
std::int64_t prepare(Kernel* kernel, int device, const char* name) {
  RYLE_CUDA(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  int per_sm = 0;
  RYLE_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, kThreads, kSharedBytes));
  int n_sm = 0;
  RYLE_CUDA(cudaDeviceGetAttribute(&n_sm, cudaDevAttrMultiProcessorCount, device));
  if (per_sm == 0) {
    throw DeviceError(std::string(name) +
                      " does not fit this device's shared memory; use cuda:simt");
  }
  return std::int64_t{per_sm} * n_sm;
}

}  // namespace ryle::correlate::mma
