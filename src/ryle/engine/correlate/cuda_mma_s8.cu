// SPDX-License-Identifier: BSD-3-Clause
// Tensor-core correlator for ci8 and ci4: mma.sync m16n8k32 on planar blocks (compute
// capability 8.0 and newer).
//
// Rows of a tile are inputs j (operand A), columns inputs i (operand B). With v_i conj(v_j):
//   Re V_ij = sum re_j re_i + im_j im_i
//   Im V_ij = sum re_j im_i - im_j re_i = sum [re_j im_i + (~im_j) re_i] + sum_t re_i       since
//   -x = ~x + 1
// ~x is one instruction and has no forbidden code, so -128 is exact (correlate.md 5.1). Sums wrap
// modulo 2^32 on the way; the final ones fit, because the caller folds them every kSpectraPerInt32
// spectra. ci4 is widened in registers to 16 times its value (high nibble as it is, low nibble
// shifted up); the fold divides by 256, which is exact.
#include <algorithm>
#include "ryle/core/baseline.hpp"
#include "ryle/device/cuda/product_tiles.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/correlate/cuda_kernels.cuh"
#include "ryle/engine/correlate/cuda_tiles.cuh"

namespace ryle::correlate::detail {
namespace {

constexpr int kRowBytes = 128;  // one block of one input
using Tiles = cuda::ProductTiles;
constexpr int kTile = Tiles::kTile;  // inputs along an edge of a thread block's tile
constexpr int kWarpRows = Tiles::kWarpRows;
constexpr int kWarpColumns = Tiles::kWarpColumns;

constexpr int kFragments = kWarpRows / 16;
constexpr int kWarpsAcross = Tiles::kWarpsAcross;
constexpr int kThreads = Tiles::kThreads;
constexpr int kStages = 3;
constexpr int kStageBytes = 2 * kTile * kRowBytes;
constexpr int kSharedBytes = kStages * kStageBytes;
constexpr int kBlocksPerSm = 4;  // 8 warps of 252 registers fill the register file
constexpr int kSumsPerThread = Tiles::kSumsPerThread;

__device__ inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// 16 bytes global to shared without a register; n_bytes = 0 writes zeros (inputs beyond the last
// one).
__device__ inline void copy_16(unsigned to, const void* from, int n_bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(n_bytes)
               : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
template <int Pending>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(Pending) : "memory");
}

// Byte offset of 16-byte piece `piece` of row `row`: the xor keeps eight rows of one piece in eight
// different banks.
__device__ inline int swizzled(int row, int piece) {
  return row * kRowBytes + ((piece ^ (row & 7)) << 4);
}

__device__ inline void load_matrices(unsigned (&r)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

__device__ inline void multiply_add(int (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, {%0, %1, %2, %3};\n"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Real and imaginary fragments of 16 rows x 32 spectra (step `step` of the block). `row` and `half`
// are the lane's address parts: the ldmatrix order of A and of B differs only in them.
template <bool Nibbles>
__device__ inline void load_parts(unsigned (&re)[4], unsigned (&im)[4], unsigned base, int row,
                                  int half, int step) {
  if constexpr (Nibbles) {
    unsigned both[4];
    load_matrices(both, base + swizzled(row, 2 * step + half));
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      re[k] = both[k] & 0xF0F0F0F0u;
      im[k] = (both[k] << 4) & 0xF0F0F0F0u;
    }
  } else {
    load_matrices(re, base + swizzled(row, 4 * step + half));
    load_matrices(im, base + swizzled(row, 4 * step + 2 + half));
  }
}

__device__ void load_rows(unsigned to, const std::byte* base, std::int64_t input_stride_bytes,
                          int first_input, int n_inputs) {
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

// Column fragment n of 8 inputs lies in half n % 2 of pair n / 2, as ldmatrix delivered it.
__device__ inline void add_product(int (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2][4],
                                   int n) {
  multiply_add(sum, a, b[n / 2][2 * (n % 2)], b[n / 2][2 * (n % 2) + 1]);
}

struct Accumulators {
  int re[kFragments][4][4] = {};  // [16-row fragment][8-column fragment][register]
  int im[kFragments][4][4] = {};
  int column[4] = {};  // sum over t of re_i, this lane's quarter of the spectra
};

template <bool Nibbles>
__device__ inline void multiply_block(Accumulators& sums, unsigned rows, unsigned columns,
                                      int warp_row, int warp_column) {
  const int lane = threadIdx.x % 32;
  const int a_row = warp_row + (lane & 15);
  const int a_half = lane >> 4;
  const int b_row = warp_column + (lane & 7) + ((lane >> 4) << 3);
  const int b_half = (lane >> 3) & 1;
  constexpr int kSteps = Nibbles ? 4 : 2;
#pragma unroll 2
  for (int step = 0; step < kSteps; ++step) {
    unsigned b_re[2][4];
    unsigned b_im[2][4];
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      load_parts<Nibbles>(b_re[pair], b_im[pair], columns, b_row + 16 * pair, b_half, step);
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
      load_parts<Nibbles>(a_re, a_im, rows, a_row + 16 * m, a_half, step);
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
#if RYLE_MUTANT != 301
      sums.im[m][n][0] += even;
      sums.im[m][n][1] += odd;
      sums.im[m][n][2] += even;
      sums.im[m][n][3] += odd;
#endif
    }
  }
}

// n_splits thread blocks share the time axis of a tile where tiles and channels alone would leave
// the device idle; integer sums do not depend on the order.
template <bool Nibbles>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    correlate_mma_s8(CudaGulp gulp, int n_tiles, int n_splits, bool overwrite,
                     std::int32_t* tile_sums) {
  extern __shared__ __align__(128) unsigned char staging[];
  const int tile_index = static_cast<int>(blockIdx.x % n_tiles);
  const int split = static_cast<int>(blockIdx.x / n_tiles % n_splits);
  const std::int64_t channel = blockIdx.x / n_tiles / n_splits;
  const TileIndex tile = tile_of(tile_index);
  const bool diagonal = tile.column == tile.row;
  const int begin = static_cast<int>(static_cast<std::int64_t>(gulp.n_blocks) * split / n_splits);
  const int end =
      static_cast<int>(static_cast<std::int64_t>(gulp.n_blocks) * (split + 1) / n_splits);
  const int n_blocks = end - begin;
  const std::byte* base = gulp.data + channel * gulp.channel_stride_bytes +
                          (gulp.first_block + begin) * gulp.block_stride_bytes;
  const unsigned shared = shared_address(staging);

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

  Accumulators sums;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / kWarpsAcross * kWarpRows;
  const int warp_column = warp % kWarpsAcross * kWarpColumns;
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) fetch(stage);
  for (int block = 0; block < n_blocks; ++block) {
    wait_copies<kStages - 2>();
    __syncthreads();  // the block is visible to all, and all are done with the stage fetched into
                      // next
    fetch(block + kStages - 1);
    const unsigned rows = shared + block % kStages * kStageBytes;
    multiply_block<Nibbles>(sums, rows, diagonal ? rows : rows + kTile * kRowBytes, warp_row,
                            warp_column);
  }
  wait_copies<0>();
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

template <bool Nibbles>
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
  correlate_mma_s8<Nibbles>
      <<<static_cast<unsigned>(work * n_splits), kThreads, kSharedBytes, stream>>>(
          gulp, static_cast<int>(plan.n_tiles), static_cast<int>(n_splits),
          overwrite && n_splits == 1, tile_sums);
  RYLE_CUDA_LAUNCHED("correlate_mma_s8");
}

template <bool Nibbles>
std::int64_t prepare(int device) {
  RYLE_CUDA(cudaFuncSetAttribute(correlate_mma_s8<Nibbles>,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  int per_sm = 0;
  RYLE_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, correlate_mma_s8<Nibbles>,
                                                          kThreads, kSharedBytes));
  int n_sm = 0;
  RYLE_CUDA(cudaDeviceGetAttribute(&n_sm, cudaDevAttrMultiProcessorCount, device));
  if (per_sm == 0)
    throw DeviceError("cuda:mma_s8 does not fit this device's shared memory; use cuda:simt");
  return std::int64_t{per_sm} * n_sm;
}

}  // namespace

MmaPlan plan_mma_s8(SampleFormat format, std::int64_t n_inputs, std::int64_t n_channels,
                    int device) {
  MmaPlan plan;
  plan.concurrent_blocks =
      format == SampleFormat::ci4 ? prepare<true>(device) : prepare<false>(device);
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
