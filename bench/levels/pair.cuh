// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "bench/levels/level.cuh"

namespace ryle::correlate::levels {

constexpr int kPairThreads = 64;

/// Wayth, Greenhill & Briggs 2009, "pair parallel": a thread block is one product, its threads are
/// channels, and a thread keeps one sum in registers. Nothing is shared: two samples are read for
/// every product. The paper looks the pair up in a table in constant memory, which holds those of
/// 180 inputs; here it follows from the index.
/// @pre blocks {pairs, channels / kPairThreads rounded up}, threads {kPairThreads}
__global__ void correlate_pair(Gulp gulp, int2* sums) {
  const int channel = static_cast<int>(blockIdx.y * kPairThreads + threadIdx.x);
  if (channel >= gulp.n_channels) return;
  const auto [i, j] = detail::tile_of(static_cast<int>(blockIdx.x));
  int2 sum = {0, 0};
  float2 of_block = {0, 0};
  for (int block = 0; block < gulp.n_blocks; ++block) {
    const std::byte* cell_i = cell(gulp, channel, block, i);
    const std::byte* cell_j = cell(gulp, channel, block, j);
    for (int word = 0; word < kWordsPerBlock; ++word) {
      const Packed four_i = load(cell_i, word);
      const Packed four_j = load(cell_j, word);
#pragma unroll
      for (int k = 0; k < 4; ++k) multiply_add(of_block, sample(four_i, k), sample(four_j, k));
    }
    fold(sum, of_block);
  }
  store(gulp, sums, channel, i, j, sum);
}

}  // namespace ryle::correlate::levels
