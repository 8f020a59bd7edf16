// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// correlate_mma_s8 is the tensor-core correlator for ci8 and ci4 on compute capability 8.0 and newer.
// It computes V_ij = sum_t v_i conj(v_j), i <= j, with mma.sync m16n8k32. Rows of a tile are inputs j
// (operand A), columns inputs i (operand B):
//   Re V_ij = sum re_j re_i + im_j im_i
//   Im V_ij = sum re_j im_i - im_j re_i = sum [re_j im_i + (~im_j) re_i] + sum_t re_i    as -x = ~x + 1
// ~x is one instruction and exists for every code, so -128 is exact (docs/design/correlate.md 5.1).
// Sums wrap modulo 2^32; the final ones fit, because the caller folds them every kSpectraPerInt32
// spectra. ci4 is widened in registers to 16 times its value (high nibble as it is, low nibble
// shifted up); the fold divides by 256, which is exact.
//
//   array         axes                                              type     unit
//   gulp          [channel][block][input][128 bytes]                ci8/ci4  LSB; blocks of 64 or 128 spectra
//   staging       [stage of 3][rows, columns][64 inputs][128 bytes] ci8/ci4  16-byte pieces swizzled
//   tile_sums     [channel][tile][register][re, im][thread]         int32    LSB^2 (ci4: 256 LSB^2)
//   sums          [channel][pair j(j+1)/2 + i][re, im]              int64    LSB^2; written by fold_mma_s8
//
// Who does what: a thread block of two warps makes one tile of 64 x 64 inputs of one channel; each warp
// makes 64 rows x 32 columns and keeps the sums in registers. All threads bring 16-byte pieces of the
// block after the next with cp.async while they multiply one that is there (three stages, one barrier
// a block of spectra, cuda/mma.cuh). Where tiles x channels leave the device idle, n_splits thread
// blocks share the time axis of a tile and add their sums atomically. Registers limit a
// multiprocessor to four thread blocks (8 warps of 252 registers).
// clang-format on
#include <algorithm>

#include "ryle/core/baseline.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/correlate/cuda/kernels.cuh"
#include "ryle/engine/correlate/cuda/mma_prepare.hpp"

namespace ryle::correlate::detail {
namespace {

using namespace mma;

// Real and imaginary fragments of 16 rows x 32 spectra (step `step` of the block). `row` and `half`
// are the lane's address parts: the ldmatrix order of A and of B differs only in them.
template <bool Int4>
__device__ inline void load_parts(unsigned (&re)[4], unsigned (&im)[4], unsigned base, int row,
                                  int half, int step) {
  if constexpr (Int4) {
    unsigned both[4];
    cuda::load_matrices(both, base + swizzled(row, 2 * step + half));
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      re[k] = both[k] & 0xF0F0F0F0u;
      im[k] = (both[k] << 4) & 0xF0F0F0F0u;
    }
  } else {
    cuda::load_matrices(re, base + swizzled(row, 4 * step + half));
    cuda::load_matrices(im, base + swizzled(row, 4 * step + 2 + half));
  }
}

// Column fragment n of 8 inputs lies in half n % 2 of pair n / 2, as ldmatrix delivered it.
__device__ inline void add_product(int (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2][4],
                                   int n) {
  const unsigned fragment[2] = {b[n / 2][2 * (n % 2)], b[n / 2][2 * (n % 2) + 1]};
  cuda::multiply_add_s8(sum, a, fragment);
}

struct Accumulators {
  int re[kFragments][4][4] = {};  // [16-row fragment][8-column fragment][register]
  int im[kFragments][4][4] = {};
  int column[4] = {};  // sum over t of re_i, this lane's quarter of the spectra
};

template <bool Int4>
__device__ inline void multiply_block(Accumulators& sums, unsigned rows, unsigned columns,
                                      int warp_row, int warp_column) {
  const Lane lane = lane_of(warp_row, warp_column);
  constexpr int kSteps = Int4 ? 4 : 2;
#pragma unroll 2
  for (int step = 0; step < kSteps; ++step) {
    unsigned b_re[2][4];
    unsigned b_im[2][4];
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      load_parts<Int4>(b_re[pair], b_im[pair], columns, lane.b_row + 16 * pair, lane.b_half, step);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        int& column = sums.column[2 * pair + k / 2];
        column = __dp4a(static_cast<int>(b_re[pair][k]), 0x01010101, column);
      }
    }
#pragma unroll
    for (int m = 0; m < kFragments; ++m) {
      unsigned a_re[4];
      unsigned a_im[4];
      load_parts<Int4>(a_re, a_im, rows, lane.a_row + 16 * m, lane.a_half, step);
      // One kind of product for all columns at a time: a sum is touched again only eight products
      // later.
#pragma unroll
      for (int n = 0; n < 4; ++n) add_product(sums.re[m][n], a_re, b_re, n);
#pragma unroll
      for (int n = 0; n < 4; ++n) add_product(sums.im[m][n], a_re, b_im, n);
#pragma unroll
      for (int n = 0; n < 4; ++n) add_product(sums.re[m][n], a_im, b_im, n);
#pragma unroll
      for (int k = 0; k < 4; ++k) a_im[k] = ~a_im[k];
#pragma unroll
      for (int n = 0; n < 4; ++n) add_product(sums.im[m][n], a_im, b_re, n);
    }
  }
}

// Completes the imaginary parts with the column sums. Register r of a fragment is column 2 (lane %
// 4) + r % 2, while lane l holds the sums of column l / 4.
__device__ inline void add_column_sums(Accumulators& sums) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    int column = sums.column[n];
    column += __shfl_xor_sync(0xffffffffu, column, 1);
    column += __shfl_xor_sync(0xffffffffu, column, 2);
    const int even = __shfl_sync(0xffffffffu, column, (lane % 4) * 8);
    const int odd = __shfl_sync(0xffffffffu, column, (lane % 4) * 8 + 4);
#pragma unroll
    for (int m = 0; m < kFragments; ++m) {
      sums.im[m][n][0] += even;
      sums.im[m][n][1] += odd;
      sums.im[m][n][2] += even;
      sums.im[m][n][3] += odd;
    }
  }
}

/// See the head of this file. The order in which n_splits thread blocks add does not matter, as the
/// sums are integers.
template <bool Int4>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    correlate_mma_s8(CudaGulp gulp, int n_tiles, int n_splits, bool overwrite,
                     std::int32_t* tile_sums) {
  extern __shared__ __align__(128) unsigned char staging[];
  const int tile_index = static_cast<int>(blockIdx.x % n_tiles);
  const int split = static_cast<int>(blockIdx.x / n_tiles % n_splits);
  const std::int64_t channel = blockIdx.x / n_tiles / n_splits;
  const TileIndex tile = tile_of(tile_index);
  const int begin = static_cast<int>(static_cast<std::int64_t>(gulp.n_blocks) * split / n_splits);
  const int end =
      static_cast<int>(static_cast<std::int64_t>(gulp.n_blocks) * (split + 1) / n_splits);
  const std::byte* base = gulp.data + channel * gulp.channel_stride_bytes +
                          (gulp.first_block + begin) * gulp.block_stride_bytes;
  Accumulators sums;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / kWarpsAcross * kWarpRows;
  const int warp_column = warp % kWarpsAcross * kWarpColumns;
  for_each_block(cuda::shared_address(staging), gulp, base, end - begin, tile,
                 [&](unsigned rows, unsigned columns) {
                   multiply_block<Int4>(sums, rows, columns, warp_row, warp_column);
                 });
  add_column_sums(sums);

  std::int32_t* out =
      tile_sums + (channel * n_tiles + tile_index) * kSumsPerThread * kThreads + threadIdx.x;
#pragma unroll
  for (int m = 0; m < kFragments; ++m) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int at = ((m * 4 + n) * 4 + r) * 2 * kThreads;
        if (overwrite) {
          out[at] = sums.re[m][n][r];
          out[at + kThreads] = sums.im[m][n][r];
        } else if (n_splits == 1) {
          out[at] += sums.re[m][n][r];
          out[at + kThreads] += sums.im[m][n][r];
        } else {
          atomicAdd(out + at, sums.re[m][n][r]);
          atomicAdd(out + at + kThreads, sums.im[m][n][r]);
        }
      }
    }
  }
}

/// Adds the int32 sums of tiles to int64 sums in pair order. A thread block takes one input j of
/// one channel, its threads the inputs i <= j. Memory binds: every sum is read once.
__global__ void fold_mma_s8(int n_inputs, int n_tiles, int shift, std::int32_t* tile_sums,
                            long long* sums) {
  const std::int64_t channel = blockIdx.x / n_inputs;
  const std::int64_t j = blockIdx.x % n_inputs;
  const std::int64_t n_products = static_cast<std::int64_t>(n_inputs) * (n_inputs + 1) / 2;
  const std::int64_t tile_row = j / kTile;
  long long* total = sums + 2 * (channel * n_products + j * (j + 1) / 2);
  for (std::int64_t i = threadIdx.x; i <= j; i += blockDim.x) {
    const std::int64_t tile = tile_row * (tile_row + 1) / 2 + i / kTile;
    std::int32_t* from = tile_sums + (channel * n_tiles + tile) * kSumsPerThread * kThreads +
                         Tiles::within(static_cast<int>(j % kTile), static_cast<int>(i % kTile));
    total[2 * i] += from[0] >> shift;
    total[2 * i + 1] += from[kThreads] >> shift;
  }
}

template <bool Int4>
void launch(const MmaPlan& plan, const CudaGulp& gulp, bool overwrite, std::int32_t* tile_sums,
            cudaStream_t stream) {
  // Split time only as far as it fills the device, and never below eight blocks: shorter pieces are
  // all start-up.
  const std::int64_t work = plan.n_tiles * gulp.n_channels;
  const std::int64_t wanted = (plan.concurrent_blocks + work - 1) / work;
  const std::int64_t n_splits =
      std::max<std::int64_t>(1, std::min<std::int64_t>(wanted, gulp.n_blocks / 8));
  if (overwrite && n_splits > 1) {
    RYLE_CUDA(cudaMemsetAsync(
        tile_sums, 0, static_cast<std::size_t>(plan.n_tile_sums) * sizeof(std::int32_t), stream));
  }
  correlate_mma_s8<Int4>
      <<<static_cast<unsigned>(work * n_splits), kThreads, kSharedBytes, stream>>>(
          gulp, static_cast<int>(plan.n_tiles), static_cast<int>(n_splits),
          overwrite && n_splits == 1, tile_sums);
  RYLE_CUDA_LAUNCHED("correlate_mma_s8");
}

}  // namespace

MmaPlan plan_mma_s8(SampleFormat format, std::int64_t n_inputs, std::int64_t n_channels,
                    int device) {
  MmaPlan plan;
  plan.concurrent_blocks =
      prepare(format == SampleFormat::ci4 ? correlate_mma_s8<true> : correlate_mma_s8<false>,
              device, "cuda:mma_s8");
  plan.n_tiles = n_pairs((n_inputs + kTile - 1) / kTile);
  plan.n_tile_sums =
      checked_product({n_channels, plan.n_tiles, kTile, kTile, 2}, "int32 tile sums");
  return plan;
}

void launch_mma_s8(SampleFormat format, const MmaPlan& plan, const CudaGulp& gulp, bool overwrite,
                   std::int32_t* tile_sums, cudaStream_t stream) {
  const auto run = format == SampleFormat::ci4 ? launch<true> : launch<false>;
  run(plan, gulp, overwrite, tile_sums, stream);
}

void launch_fold_mma_s8(SampleFormat format, const MmaPlan& plan, int n_inputs, int n_channels,
                        std::int32_t* tile_sums, ci64* sums, cudaStream_t stream) {
  const int shift = format == SampleFormat::ci4 ? 8 : 0;
  const auto n_blocks = static_cast<unsigned>(n_inputs) * static_cast<unsigned>(n_channels);
  auto* total = reinterpret_cast<long long*>(sums);
  const auto n_tiles = static_cast<int>(plan.n_tiles);
  fold_mma_s8<<<n_blocks, 128, 0, stream>>>(n_inputs, n_tiles, shift, tile_sums, total);
  RYLE_CUDA_LAUNCHED("fold_mma_s8");
  RYLE_CUDA(cudaMemsetAsync(
      tile_sums, 0, static_cast<std::size_t>(plan.n_tile_sums) * sizeof(std::int32_t), stream));
}

}  // namespace ryle::correlate::detail
