// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// correlate_mma_f16 is the tensor-core correlator for cf16 on compute capability 8.0 and newer. It
// computes V_ij = sum_t v_i conj(v_j), i <= j, with mma.sync m16n8k16 and fp32 sums. Rows of a tile are
// inputs j, columns inputs i:
//   Re V_ij = sum re_j re_i + im_j im_i
//   Im V_ij = sum re_j im_i + (-im_j) re_i        - flips the sign bit
//
//   array         axes                                              type     unit
//   gulp          [channel][block][input][128 bytes]                cf16     planar blocks of 32 spectra
//   staging       [stage of 3][rows, columns][64 inputs][128 bytes] cf16     16-byte pieces swizzled
//   tile_sums     [channel][tile][register][re, im][thread]         float    (unit of samples)^2
//   sums          [channel][pair j(j+1)/2 + i][re, im]              double   written by fold_mma_f16
//
// Who does what: as in cuda/mma_s8.cu, since 16 halves lie in a fragment as 32 signed bytes do. But one
// thread block takes all spectra of its tile, in their order, so that equal gulps give equal bits.
// clang-format on
#pragma once
#include "ryle/engine/correlate/cuda/mma.cuh"

namespace ryle::correlate::mma {
inline constexpr int kColumnFragments = kWarpColumns / 8;

struct FloatSums {
  float re[kFragments][kColumnFragments][4] = {};  // [16 rows][8 columns][register]
  float im[kFragments][kColumnFragments][4] = {};
};

/// c += a b for column fragment n, as two ldmatrix .x4 delivered all of them.
__device__ inline void add_product_f16(float (&c)[4], const unsigned (&a)[4],
                                       const unsigned (&b)[kColumnFragments / 2][4], int n) {
  const unsigned(&pair)[4] = b[n / 2];
  cuda::multiply_add_f16(c, a, {pair[2 * (n % 2)], pair[2 * (n % 2) + 1]});
}

__device__ inline void multiply_fp16(FloatSums& sums, unsigned rows, unsigned columns,
                                     const Lane& lane) {
#pragma unroll
  for (int step = 0; step < 2; ++step) {  // 16 spectra: 32 bytes of re, 32 of im
    unsigned b_re[kColumnFragments / 2][4], b_im[kColumnFragments / 2][4];
#pragma unroll
    for (int pair = 0; pair < kColumnFragments / 2; ++pair) {
      const int row = lane.b_row + 16 * pair;
      cuda::load_matrices(b_re[pair], columns + swizzled(row, 4 * step + lane.b_half));
      cuda::load_matrices(b_im[pair], columns + swizzled(row, 4 * step + 2 + lane.b_half));
    }
#pragma unroll
    for (int m = 0; m < kFragments; ++m) {
      unsigned a_re[4], a_im[4];
      const int row = lane.a_row + 16 * m;
      cuda::load_matrices(a_re, rows + swizzled(row, 4 * step + lane.a_half));
      cuda::load_matrices(a_im, rows + swizzled(row, 4 * step + 2 + lane.a_half));
      // One kind of product for all columns at a time: a sum is touched again only eight products
      // later.
#pragma unroll
      for (int n = 0; n < kColumnFragments; ++n) add_product_f16(sums.re[m][n], a_re, b_re, n);
#pragma unroll
      for (int n = 0; n < kColumnFragments; ++n) add_product_f16(sums.im[m][n], a_re, b_im, n);
#pragma unroll
      for (int n = 0; n < kColumnFragments; ++n) add_product_f16(sums.re[m][n], a_im, b_im, n);
#pragma unroll
      for (int k = 0; k < 4; ++k) a_im[k] ^= 0x80008000u;
#pragma unroll
      for (int n = 0; n < kColumnFragments; ++n) add_product_f16(sums.im[m][n], a_im, b_re, n);
    }
  }
}

/// See the head of this file.
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    correlate_mma_f16(detail::CudaGulp gulp, int n_tiles, bool overwrite, float* tile_sums) {
  const detail::TileIndex tile = detail::tile_of(static_cast<int>(blockIdx.x) % n_tiles);
  const std::byte* base = gulp.data +
                          static_cast<int>(blockIdx.x) / n_tiles * gulp.channel_stride_bytes +
                          gulp.first_block * gulp.block_stride_bytes;
  FloatSums sums;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const Lane lane = lane_of(warp / kWarpsAcross * kWarpRows, warp % kWarpsAcross * kWarpColumns);
  for_each_block(
      cuda::shared_address(cuda::dynamic_shared()), gulp, base, gulp.n_blocks, tile,
      [&](unsigned rows, unsigned columns) { multiply_fp16(sums, rows, columns, lane); });

  float* out = tile_sums + std::int64_t{blockIdx.x} * kSumsPerThread * kThreads + threadIdx.x;
#pragma unroll
  for (int m = 0; m < kFragments; ++m) {
#pragma unroll
    for (int n = 0; n < kColumnFragments; ++n) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int at = ((m * kColumnFragments + n) * 4 + r) * 2 * kThreads;
        out[at] = overwrite ? sums.re[m][n][r] : out[at] + sums.re[m][n][r];
        out[at + kThreads] = overwrite ? sums.im[m][n][r] : out[at + kThreads] + sums.im[m][n][r];
      }
    }
  }
}

/// Adds the fp32 sums of tiles to double sums in pair order. A thread block takes one input j of
/// one channel, its threads the inputs i <= j. Memory binds: every sum is read once.
__global__ void fold_mma_f16(int n_inputs, int n_tiles, const float* tile_sums, double* sums) {
  const auto channel = static_cast<std::int64_t>(blockIdx.x) / n_inputs;
  const auto j = static_cast<int>(blockIdx.x % n_inputs);
  const float* tiles = tile_sums + channel * n_tiles * Tiles::kSumsPerTile;
  const std::int64_t n_products = static_cast<std::int64_t>(n_inputs) * (n_inputs + 1) / 2;
  double* total = sums + 2 * (channel * n_products + static_cast<std::int64_t>(j) * (j + 1) / 2);
  for (int i = threadIdx.x; i <= j; i += blockDim.x) {
    const float* from = tiles + Tiles::index(i, j);
    total[2 * i] += from[0];
    if (i < j) total[2 * i + 1] += from[Tiles::kImaginary];  // V_jj is real: no cuts in its place
  }
}

}  // namespace ryle::correlate::mma
