// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "bench/levels/level.cuh"

namespace ryle::correlate::levels {

constexpr int kTiledEdge = 8;  // threads along an edge of the tile
constexpr int kTiledRegisters =
    4;  // inputs of a thread along an edge: 2 stations x 2 polarizations
constexpr int kTiledInputs = kTiledEdge * kTiledRegisters;
constexpr int kTiledDepth = 16;  // spectra staged at a time

struct TiledStage {
  float2 row[2][kTiledDepth][kTiledInputs];
  float2 column[2][kTiledDepth][kTiledInputs];
};

/// 16 spectra of one input: bytes 16 quarter .. of the real parts of a cell, and the imaginary.
struct Quarter {
  uint4 re;
  uint4 im;
};
__device__ inline Quarter load_quarter(const std::byte* cell, int quarter) {
  const auto* from = reinterpret_cast<const uint4*>(cell) + quarter / 2 * 4 + quarter % 2;
  return {from[0], from[2]};
}

__device__ inline void put_quarter(float2 (*to)[kTiledInputs], int input, const Quarter& from) {
  const unsigned re[4] = {from.re.x, from.re.y, from.re.z, from.re.w};
  const unsigned im[4] = {from.im.x, from.im.y, from.im.z, from.im.w};
#pragma unroll
  for (int t = 0; t < kTiledDepth; ++t) to[t][input] = sample({re[t / 4], im[t / 4]}, t % 4);
}

/// Clark, La Plante & Greenhill 2012 (xGPU): tiles at two levels. A thread block owns 32 x 32
/// inputs of one channel, a thread 4 x 4 of them in registers (2 x 2 stations of two
/// polarizations), so that a sample in shared memory serves four products and a sample from memory
/// 32: 1/16 are read for a product. Two stages of shared memory: the next spectra are on their way
/// while these are multiplied, and one barrier a stage is enough.
/// @pre blocks {triangle of tiles, channels}, threads {kTiledEdge, kTiledEdge}
__global__ void __launch_bounds__(kTiledEdge* kTiledEdge) correlate_tiled(Gulp gulp, int2* sums) {
  auto& stage = cuda::shared<TiledStage>();
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  const int channel = static_cast<int>(blockIdx.y);
  const auto [column, row] = detail::tile_of(static_cast<int>(blockIdx.x));

  // Thread t copies input t of the rows or, from 32 on, of the columns.
  const int t = y * kTiledEdge + x;
  const bool copies_row = t < kTiledInputs;
  const int copied = t % kTiledInputs;
  const int input = (copies_row ? row : column) * kTiledInputs + copied;
  const auto fetch = [&](int step) {
    return input < gulp.n_inputs && step < 4 * gulp.n_blocks
               ? load_quarter(cell(gulp, channel, step / 4, input), step % 4)
               : Quarter{};
  };
  const auto put = [&](int step, const Quarter& quarter) {
    // Not (c ? a : b)[k], of which g++ 12 with sanitizers writes to a copy.
    auto* to = copies_row ? stage.row[step % 2] : stage.column[step % 2];
    put_quarter(to, copied, quarter);
  };

  int2 sum[kTiledRegisters][kTiledRegisters] = {};
  float2 of_block[kTiledRegisters][kTiledRegisters] = {};
  put(0, fetch(0));
  __syncthreads();
  for (int step = 0; step < 4 * gulp.n_blocks; ++step) {
    const Quarter next = fetch(step + 1);
    const auto& rows = stage.row[step % 2];
    const auto& columns = stage.column[step % 2];
#pragma unroll 4
    for (int depth = 0; depth < kTiledDepth; ++depth) {
      float2 v_j[kTiledRegisters];
      float2 v_i[kTiledRegisters];
#pragma unroll
      for (int a = 0; a < kTiledRegisters; ++a) {
        v_j[a] = rows[depth][kTiledRegisters * y + a];
        v_i[a] = columns[depth][kTiledRegisters * x + a];
      }
#pragma unroll
      for (int a = 0; a < kTiledRegisters; ++a) {
#pragma unroll
        for (int b = 0; b < kTiledRegisters; ++b) multiply_add(of_block[a][b], v_i[b], v_j[a]);
      }
    }
    put(step + 1, next);
    __syncthreads();
    if (step % 4 != 3) continue;
#pragma unroll
    for (int a = 0; a < kTiledRegisters; ++a) {
#pragma unroll
      for (int b = 0; b < kTiledRegisters; ++b) fold(sum[a][b], of_block[a][b]);
    }
  }
#pragma unroll
  for (int a = 0; a < kTiledRegisters; ++a) {
#pragma unroll
    for (int b = 0; b < kTiledRegisters; ++b) {
      store(gulp, sums, channel, column * kTiledInputs + kTiledRegisters * x + b,
            row * kTiledInputs + kTiledRegisters * y + a, sum[a][b]);
    }
  }
}

}  // namespace ryle::correlate::levels
