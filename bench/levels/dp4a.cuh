// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "bench/levels/level.cuh"

namespace ryle::correlate::levels {

constexpr int kDp4aEdge = 8;
constexpr int kDp4aRegisters = 4;
constexpr int kDp4aInputs = kDp4aEdge * kDp4aRegisters;
constexpr int kDp4aWords = 8;  // of four spectra, staged at a time: half a block

/// One input of half a block: 8 words of real parts, 8 of imaginary ones.
struct Half {
  uint4 part[4];
};
__device__ inline Half load_half(const std::byte* cell, int half) {
  const auto* from = reinterpret_cast<const uint4*>(cell) + 4 * half;
  return {{from[0], from[1], from[2], from[3]}};
}

struct Dp4aStage {
  unsigned row[2][2 * kDp4aWords][kDp4aInputs];  // [stage][re words, im words][input]
  unsigned column[2][2 * kDp4aWords][kDp4aInputs];
};

__device__ inline void put_half(unsigned (*to)[kDp4aInputs], int input, const Half& from) {
#pragma unroll
  for (int p = 0; p < 4; ++p) {
    to[4 * p][input] = from.part[p].x;
    to[4 * p + 1][input] = from.part[p].y;
    to[4 * p + 2][input] = from.part[p].z;
    to[4 * p + 3][input] = from.part[p].w;
  }
}

/// The tiles of Clark 2012 with what integer units have had since Pascal: one instruction
/// multiplies four spectra of one byte and adds them up, so that a sample stays packed all the way.
/// The imaginary part is the difference of two sums, because a byte cannot hold +128.
/// @pre blocks {triangle of tiles, channels}, threads {kDp4aEdge, kDp4aEdge}
__global__ void __launch_bounds__(kDp4aEdge* kDp4aEdge) correlate_dp4a(Gulp gulp, int2* sums) {
  auto& stage = cuda::shared<Dp4aStage>();
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  const int channel = static_cast<int>(blockIdx.y);
  const auto [column, row] = detail::tile_of(static_cast<int>(blockIdx.x));

  const int t = y * kDp4aEdge + x;
  const bool copies_row = t < kDp4aInputs;
  const int copied = t % kDp4aInputs;
  const int input = (copies_row ? row : column) * kDp4aInputs + copied;
  const auto fetch = [&](int step) {
    return input < gulp.n_inputs && step < 2 * gulp.n_blocks
               ? load_half(cell(gulp, channel, step / 2, input), step % 2)
               : Half{};
  };
  const auto put = [&](int step, const Half& half) {
    auto* to = copies_row ? stage.row[step % 2] : stage.column[step % 2];
    put_half(to, copied, half);
  };

  int re[kDp4aRegisters][kDp4aRegisters] = {};
  int plus[kDp4aRegisters][kDp4aRegisters] = {};   // im_i re_j
  int minus[kDp4aRegisters][kDp4aRegisters] = {};  // re_i im_j
  put(0, fetch(0));
  __syncthreads();
  for (int step = 0; step < 2 * gulp.n_blocks; ++step) {
    const Half next = fetch(step + 1);
    const auto& rows = stage.row[step % 2];
    const auto& columns = stage.column[step % 2];
#pragma unroll
    for (int word = 0; word < kDp4aWords; ++word) {
#pragma unroll
      for (int a = 0; a < kDp4aRegisters; ++a) {
        const int j = kDp4aRegisters * y + a;
        const auto re_j = static_cast<int>(rows[word][j]);
        const auto im_j = static_cast<int>(rows[kDp4aWords + word][j]);
#pragma unroll
        for (int b = 0; b < kDp4aRegisters; ++b) {
          const int i = kDp4aRegisters * x + b;
          const auto re_i = static_cast<int>(columns[word][i]);
          const auto im_i = static_cast<int>(columns[kDp4aWords + word][i]);
          re[a][b] = __dp4a(re_i, re_j, re[a][b]);
          re[a][b] = __dp4a(im_i, im_j, re[a][b]);
          plus[a][b] = __dp4a(im_i, re_j, plus[a][b]);
          minus[a][b] = __dp4a(re_i, im_j, minus[a][b]);
        }
      }
    }
    put(step + 1, next);
    __syncthreads();
  }
#pragma unroll
  for (int a = 0; a < kDp4aRegisters; ++a) {
#pragma unroll
    for (int b = 0; b < kDp4aRegisters; ++b) {
      store(gulp, sums, channel, column * kDp4aInputs + kDp4aRegisters * x + b,
            row * kDp4aInputs + kDp4aRegisters * y + a, {re[a][b], plus[a][b] - minus[a][b]});
    }
  }
}

}  // namespace ryle::correlate::levels
