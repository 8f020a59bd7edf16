// SPDX-License-Identifier: BSD-3-Clause
// Tensor-core correlator for cf16: mma.sync m16n8k16 on planar blocks, fp32 sums (compute
// capability 8.0 and newer). Rows of a tile are inputs j, columns inputs i:
//   Re V_ij = sum re_j re_i + im_j im_i
//   Im V_ij = sum re_j im_i + (-im_j) re_i        - is the sign bit flipped
// The bytes of a fragment of 16 halves lie as those of 32 signed bytes do: tiles, stages and the
// order of the sums are those of cuda:mma_s8. A thread block takes all spectra of its tile, in
// their order, so equal gulps give equal bits.
#include "ryle/core/baseline.hpp"
#include "ryle/engine/correlate/cuda_mma.cuh"

namespace ryle::correlate::detail {
namespace {

using namespace mma;

constexpr int kColumnFragments = kWarpColumns / 8;

struct FloatSums {
  float re[kFragments][kColumnFragments][4] = {};  // [16 rows][8 columns][register]
  float im[kFragments][kColumnFragments][4] = {};
};

/// c += a b, a 16 x 16 halves, b column fragment n as two ldmatrix .x4 delivered all of them.
__device__ inline void multiply_add_f16(float (&c)[4], const unsigned (&a)[4],
                                        const unsigned (&b)[kColumnFragments / 2][4], int n) {
  const unsigned(&pair)[4] = b[n / 2];
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, {%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(pair[2 * (n % 2)]),
        "r"(pair[2 * (n % 2) + 1]));
}

__device__ inline void multiply_halves(FloatSums& sums, unsigned rows, unsigned columns,
                                       const Lane& lane) {
#pragma unroll
  for (int step = 0; step < 2; ++step) {  // 16 spectra: 32 bytes of re, 32 of im
    unsigned b_re[kColumnFragments / 2][4], b_im[kColumnFragments / 2][4];
#pragma unroll
    for (int pair = 0; pair < kColumnFragments / 2; ++pair) {
      const int row = lane.b_row + 16 * pair;
      load_matrices(b_re[pair], columns + swizzled(row, 4 * step + lane.b_half));
      load_matrices(b_im[pair], columns + swizzled(row, 4 * step + 2 + lane.b_half));
    }
#pragma unroll
    for (int m = 0; m < kFragments; ++m) {
      unsigned a_re[4], a_im[4];
      const int row = lane.a_row + 16 * m;
      load_matrices(a_re, rows + swizzled(row, 4 * step + lane.a_half));
      load_matrices(a_im, rows + swizzled(row, 4 * step + 2 + lane.a_half));
      // One kind of product for all columns at a time: a sum is touched again only eight products
      // later.
#pragma unroll
      for (int n = 0; n < kColumnFragments; ++n) multiply_add_f16(sums.re[m][n], a_re, b_re, n);
#pragma unroll
      for (int n = 0; n < kColumnFragments; ++n) multiply_add_f16(sums.im[m][n], a_re, b_im, n);
#pragma unroll
      for (int n = 0; n < kColumnFragments; ++n) multiply_add_f16(sums.re[m][n], a_im, b_im, n);
#pragma unroll
      for (int k = 0; k < 4; ++k) a_im[k] ^= 0x80008000u;
#pragma unroll
      for (int n = 0; n < kColumnFragments; ++n) multiply_add_f16(sums.im[m][n], a_im, b_re, n);
    }
  }
}

__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    correlate_mma_f16(CudaGulp gulp, int n_tiles, bool overwrite, float* tile_sums) {
  extern __shared__ __align__(128) unsigned char staging[];
  const TileIndex tile = tile_of(static_cast<int>(blockIdx.x % n_tiles));
  const std::byte* base = gulp.data + blockIdx.x / n_tiles * gulp.channel_stride_bytes +
                          gulp.first_block * gulp.block_stride_bytes;
  FloatSums sums;
  const int warp = threadIdx.x / 32;
  const Lane lane = lane_of(warp / kWarpsAcross * kWarpRows, warp % kWarpsAcross * kWarpColumns);
  for_each_block(
      shared_address(staging), gulp, base, gulp.n_blocks, tile,
      [&](unsigned rows, unsigned columns) { multiply_halves(sums, rows, columns, lane); });

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

}  // namespace

F16Plan plan_mma_f16(std::int64_t n_inputs, std::int64_t n_channels, int device) {
  prepare(correlate_mma_f16, device, "cuda:mma_f16");
  F16Plan plan;
  plan.n_sums = checked_product({n_channels, Tiles::n_tiles(n_inputs), Tiles::kSumsPerTile},
                                "fp32 tile sums");
  return plan;
}

void launch_mma_f16(const CudaGulp& gulp, bool overwrite, float* sums, cudaStream_t stream) {
  const auto n_tiles = static_cast<int>(Tiles::n_tiles(gulp.n_inputs));
  correlate_mma_f16<<<static_cast<unsigned>(n_tiles) * static_cast<unsigned>(gulp.n_channels),
                      kThreads, kSharedBytes, stream>>>(gulp, n_tiles, overwrite, sums);
  RYLE_CUDA_LAUNCHED("correlate_mma_f16");
}

void launch_fold_mma_f16(int n_inputs, int n_channels, const float* sums, cf64* totals,
                         cudaStream_t stream) {
  const auto n_blocks = static_cast<unsigned>(n_inputs) * static_cast<unsigned>(n_channels);
  fold_mma_f16<<<n_blocks, 128, 0, stream>>>(n_inputs, static_cast<int>(Tiles::n_tiles(n_inputs)),
                                             sums, reinterpret_cast<double*>(totals));
  RYLE_CUDA_LAUNCHED("fold_mma_f16");
}

}  // namespace ryle::correlate::detail
