// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "bench/levels/level.cuh"

namespace ryle::correlate::levels {

constexpr int kHybridThreads = 64;

struct HybridRow {
  float2 sample[4][kHybridThreads];
};

/// Wayth, Greenhill & Briggs 2009, the hybrid of pairs and groups: threads are channels as in
/// "pair parallel", but each keeps G sums, of one row j with G columns i. The row's sample waits in
/// shared memory, used as more registers: every thread has a place of its own, so that no barrier
/// is needed. (G + 1) / G samples are read for a product.
/// @pre blocks {n_inputs x groups of G columns, channels / kHybridThreads rounded up}
template <int G>
__global__ void correlate_hybrid(Gulp gulp, int2* sums) {
  auto& row = cuda::shared<HybridRow>();
  const int channel = static_cast<int>(blockIdx.y * kHybridThreads + threadIdx.x);
  const int n_groups = (gulp.n_inputs + G - 1) / G;
  const int j = static_cast<int>(blockIdx.x) / n_groups;
  const int first = static_cast<int>(blockIdx.x) % n_groups * G;
  if (channel >= gulp.n_channels || first > j) return;
  int2 sum[G] = {};
  float2 of_block[G] = {};
  for (int block = 0; block < gulp.n_blocks; ++block) {
    for (int word = 0; word < kWordsPerBlock; ++word) {
      const Packed four_j = load(cell(gulp, channel, block, j), word);
#pragma unroll
      for (int k = 0; k < 4; ++k) row.sample[k][threadIdx.x] = sample(four_j, k);
#pragma unroll
      for (int g = 0; g < G; ++g) {
        // Columns beyond the diagonal are computed again from the last one, and dropped.
        const int i = first + g <= j ? first + g : j;
        const Packed four_i = load(cell(gulp, channel, block, i), word);
#pragma unroll
        for (int k = 0; k < 4; ++k)
          multiply_add(of_block[g], sample(four_i, k), row.sample[k][threadIdx.x]);
      }
    }
#pragma unroll
    for (int g = 0; g < G; ++g) fold(sum[g], of_block[g]);
  }
#pragma unroll
  for (int g = 0; g < G; ++g) store(gulp, sums, channel, first + g, j, sum[g]);
}

}  // namespace ryle::correlate::levels
