// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "bench/levels/level.cuh"

namespace ryle::correlate::levels {

constexpr int kGroupChannels = 32;

template <int G>
struct GroupStage {
  float2 row[4][G][kGroupChannels];
  float2 column[4][G][kGroupChannels];
};

/// Wayth, Greenhill & Briggs 2009, "group parallel": a thread block is a group of G x G products of
/// kGroupChannels channels. Thread (channel, g) reads one row and one column for all of the group
/// into shared memory and keeps the G sums of row g: 2 / G samples are read for a product. G = 4
/// was the fastest in the paper.
/// @pre blocks {triangle of groups, channels / kGroupChannels rounded up}, threads {kGroupChannels,
/// G}
template <int G>
__global__ void correlate_group(Gulp gulp, int2* sums) {
  auto& stage = cuda::shared<GroupStage<G>>();
  const unsigned x = threadIdx.x;
  const unsigned y = threadIdx.y;
  const auto [column, row] = detail::tile_of(static_cast<int>(blockIdx.x));
  const int channel = static_cast<int>(blockIdx.y * kGroupChannels + x);
  const auto fetch = [&](int block, int word, int input) {
    return channel < gulp.n_channels && input < gulp.n_inputs
               ? load(cell(gulp, channel, block, input), word)
               : Packed{0, 0};
  };
  int2 sum[G] = {};
  float2 of_block[G] = {};
  for (int block = 0; block < gulp.n_blocks; ++block) {
    for (int word = 0; word < kWordsPerBlock; ++word) {
      const Packed of_row = fetch(block, word, row * G + static_cast<int>(y));
      const Packed of_column = fetch(block, word, column * G + static_cast<int>(y));
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        stage.row[k][y][x] = sample(of_row, k);
        stage.column[k][y][x] = sample(of_column, k);
      }
      __syncthreads();
#pragma unroll
      for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int g = 0; g < G; ++g)
          multiply_add(of_block[g], stage.column[k][g][x], stage.row[k][y][x]);
      }
      __syncthreads();  // all have read before anybody writes again
    }
#pragma unroll
    for (int g = 0; g < G; ++g) fold(sum[g], of_block[g]);
  }
#pragma unroll
  for (int g = 0; g < G; ++g)
    store(gulp, sums, channel, column * G + g, row * G + static_cast<int>(y), sum[g]);
}

}  // namespace ryle::correlate::levels
