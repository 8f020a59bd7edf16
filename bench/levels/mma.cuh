// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "bench/levels/dp4a.cuh"

namespace ryle::correlate::levels {

constexpr int kMmaInputs = 64;  // along an edge of a thread block's tile
constexpr int kMmaWarp = 32;    // along an edge of a warp's tile: four warps
constexpr int kMmaThreads = 128;
constexpr int kMmaRowWords = 20;  // 16 of data; 20 puts eight rows into different banks

struct MmaStage {
  alignas(16) unsigned input[2][2 * kMmaInputs]
                            [kMmaRowWords];  // [stage][rows j, then columns i][re, im words]
};

/// 16 inputs x 32 spectra as the tensor unit wants them (device/cuda/kernel.cuh): one operand A, or
/// two operands B.
struct MmaParts {
  unsigned re[4];
  unsigned im[4];
};
__device__ inline MmaParts load_parts(const unsigned (*input)[kMmaRowWords], int g, int q) {
  const unsigned* low = input[g];
  const unsigned* high = input[g + 8];
  return {{low[q], high[q], low[q + 4], high[q + 4]},
          {low[q + 8], high[q + 8], low[q + 12], high[q + 12]}};
}

/// The same tiles once more, on tensor cores (mma.sync m16n8k32, compute capability 8.0 and newer):
/// a warp multiplies 16 x 8 inputs x 32 spectra in one instruction and holds 32 x 32 products. Rows
/// j are operand A, columns i operand B. As with dp4a, the imaginary part is the difference of two
/// sums.
/// @pre blocks {triangle of tiles, channels}, threads {kMmaThreads}
__global__ void __launch_bounds__(kMmaThreads) correlate_mma(Gulp gulp, int2* sums) {
  auto& stage = cuda::shared<MmaStage>();
  const int t = static_cast<int>(threadIdx.x);
  const int channel = static_cast<int>(blockIdx.y);
  const auto [column, row] = detail::tile_of(static_cast<int>(blockIdx.x));
  const int g = t % 32 / 4;
  const int q = t % 4;
  const int first_row = t / 64 * kMmaWarp;
  const int first_column = t / 32 % 2 * kMmaWarp;

  // Thread t copies input t of the rows or, from 64 on, of the columns.
  const int input = (t < kMmaInputs ? row : column) * kMmaInputs + t % kMmaInputs;
  const auto fetch = [&](int step) {
    return input < gulp.n_inputs && step < 2 * gulp.n_blocks
               ? load_half(cell(gulp, channel, step / 2, input), step % 2)
               : Half{};
  };
  const auto put = [&](int step, const Half& half) {
    auto* to = reinterpret_cast<uint4*>(stage.input[step % 2][t]);
#pragma unroll
    for (int p = 0; p < 4; ++p) to[p] = half.part[p];
  };

  int re[2][4][4] = {};  // [16 rows][8 columns][register]
  int plus[2][4][4] = {};
  int minus[2][4][4] = {};
  put(0, fetch(0));
  __syncthreads();
  for (int step = 0; step < 2 * gulp.n_blocks; ++step) {
    const Half next = fetch(step + 1);
    const auto* rows = stage.input[step % 2] + first_row;
    const auto* columns = stage.input[step % 2] + kMmaInputs + first_column;
    const MmaParts a[2] = {load_parts(rows, g, q), load_parts(rows + 16, g, q)};
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const MmaParts both = load_parts(columns + 16 * pair, g, q);  // columns g and g + 8
#pragma unroll
      for (int one = 0; one < 2; ++one) {
        const unsigned b_re[2] = {both.re[one], both.re[one + 2]};
        const unsigned b_im[2] = {both.im[one], both.im[one + 2]};
        const int n = 2 * pair + one;
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          cuda::multiply_add_s8(re[m][n], a[m].re, b_re);
          cuda::multiply_add_s8(plus[m][n], a[m].re, b_im);
          cuda::multiply_add_s8(re[m][n], a[m].im, b_im);
          cuda::multiply_add_s8(minus[m][n], a[m].im, b_re);
        }
      }
    }
    put(step + 1, next);
    __syncthreads();
  }
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        store(gulp, sums, channel, column * kMmaInputs + first_column + 8 * n + 2 * q + r % 2,
              row * kMmaInputs + first_row + 16 * m + g + r / 2 * 8,
              {re[m][n][r], plus[m][n][r] - minus[m][n][r]});
      }
    }
  }
}

}  // namespace ryle::correlate::levels
