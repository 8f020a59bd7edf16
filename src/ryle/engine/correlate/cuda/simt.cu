// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// correlate_simt computes V_ij = sum_t v_i conj(v_j), i <= j, on ordinary arithmetic units, for every
// sample format. It is the only path of a GPU for ci16 and cf32, and the check of the tensor-core kernels.
//
//   array           axes                                          type            unit
//   gulp            [channel][block][input][128 or 256 bytes]     any format      planar blocks, core/blocks.hpp
//   rows, columns   [16 spectra][64 inputs + 1 of padding]        int or float    in shared memory: inputs j, inputs i
//   sums            [channel][pair j(j+1)/2 + i][re, im]          int64 / double  (unit of samples)^2
//
// Who does what: a thread block of 16 x 16 threads makes one tile of 64 x 64 inputs of one channel; a
// thread makes 4 x 4 of its sums in registers. All threads bring 16 spectra of rows and columns to
// shared memory, meet at a barrier, multiply, and meet again. Integers are summed in int (ci4, ci8) or
// int64 (ci16), floats in fp32 over one launch; the end of the kernel adds them to sums.
// clang-format on
#include <cuda_fp16.h>

#include "ryle/core/baseline.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/correlate/cuda/kernels.cuh"
#include "ryle/engine/correlate/cuda/tiles.cuh"

namespace ryle::correlate::detail {
namespace {

constexpr int kTile = 64;   // inputs along an edge of a thread block's tile
constexpr int kDepth = 16;  // spectra staged at a time: divides the spectra of every block format
constexpr int kEdge = 16;   // threads along an edge
constexpr int kPerThread = kTile / kEdge;

template <class T>
struct Complex {
  T re;
  T im;
};

// How one format is read and summed; `spectrum` counts inside the block (core/blocks.hpp has the
// layouts).
struct ReadCi8 {
  using Value = int;
  using Sum = int;
  static constexpr int kSpectra = 64;
  __device__ static Complex<int> at(const signed char* cell, int spectrum) {
    const int byte = (spectrum / 32) * 64 + spectrum % 32;
    return {cell[byte], cell[byte + 32]};
  }
};
struct ReadCi4 {
  using Value = int;
  using Sum = int;
  static constexpr int kSpectra = 128;
  __device__ static Complex<int> at(const signed char* cell, int spectrum) {
    const int code = cell[spectrum];
    return {code >> 4, static_cast<int>(static_cast<signed char>(code << 4)) >> 4};
  }
};
struct ReadCi16 {
  using Value = int;
  using Sum = long long;
  static constexpr int kSpectra = 64;
  __device__ static Complex<int> at(const signed char* cell, int spectrum) {
    const int byte = (spectrum / 32) * 64 + spectrum % 32;
    const auto* low = reinterpret_cast<const unsigned char*>(cell) + 128;
    return {cell[byte] * 256 + low[byte], cell[byte + 32] * 256 + low[byte + 32]};
  }
};
struct ReadCf16 {
  using Value = float;
  using Sum = float;
  static constexpr int kSpectra = 32;
  __device__ static Complex<float> at(const signed char* cell, int spectrum) {
    const auto* half = reinterpret_cast<const __half*>(cell) + (spectrum / 16) * 32 + spectrum % 16;
    return {__half2float(half[0]), __half2float(half[16])};
  }
};
struct ReadCf32 {
  using Value = float;
  using Sum = float;
  static constexpr int kSpectra = 16;
  __device__ static Complex<float> at(const signed char* cell, int spectrum) {
    const auto* value = reinterpret_cast<const float*>(cell) + spectrum;
    return {value[0], value[16]};
  }
};

template <class T>
__device__ T multiply_add(T sum, float a, float b) {
  return fmaf(a, b, sum);
}
__device__ inline int multiply_add(int sum, int a, int b) { return sum + a * b; }
__device__ inline long long multiply_add(long long sum, int a, int b) {
  return sum + static_cast<long long>(a) * b;
}

template <class Read>
__device__ void stage(Complex<typename Read::Value> (*to)[kTile + 1], const CudaGulp& gulp,
                      const std::byte* base, int first_input, int first_spectrum) {
  const int input = threadIdx.x / 4;
  const bool exists = first_input + input < gulp.n_inputs;
  const auto* cell =
      reinterpret_cast<const signed char*>(base + (first_input + input) * gulp.input_stride_bytes);
#pragma unroll
  for (int k = 0; k < kDepth / 4; ++k) {
    const int depth = threadIdx.x % 4 + 4 * k;
    to[depth][input] =
        exists ? Read::at(cell, first_spectrum + depth) : Complex<typename Read::Value>{0, 0};
  }
}

/// See the head of this file.
template <class Read, class Total>
__global__ void __launch_bounds__(kEdge* kEdge)
    correlate_simt(CudaGulp gulp, int n_tiles, Total* sums) {
  using Value = typename Read::Value;
  using Sum = typename Read::Sum;
  __shared__ Complex<Value> rows[kDepth][kTile + 1];
  __shared__ Complex<Value> columns[kDepth][kTile + 1];
  const TileIndex tile = tile_of(static_cast<int>(blockIdx.x % n_tiles));
  const std::int64_t channel = blockIdx.x / n_tiles;
  const int x = threadIdx.x % kEdge;
  const int y = threadIdx.x / kEdge;
  Complex<Sum> sum[kPerThread][kPerThread] = {};

  for (int block = gulp.first_block; block < gulp.first_block + gulp.n_blocks; ++block) {
    const std::byte* base =
        gulp.data + channel * gulp.channel_stride_bytes + block * gulp.block_stride_bytes;
    for (int spectrum = 0; spectrum < Read::kSpectra; spectrum += kDepth) {
      stage<Read>(rows, gulp, base, tile.row * kTile, spectrum);
      stage<Read>(columns, gulp, base, tile.column * kTile, spectrum);
      __syncthreads();
      for (int depth = 0; depth < kDepth; ++depth) {
        Complex<Value> v_j[kPerThread];
        Complex<Value> v_i[kPerThread];
#pragma unroll
        for (int a = 0; a < kPerThread; ++a) {
          v_j[a] = rows[depth][y + kEdge * a];
          v_i[a] = columns[depth][x + kEdge * a];
        }
#pragma unroll
        for (int a = 0; a < kPerThread; ++a) {
#pragma unroll
          for (int b = 0; b < kPerThread; ++b) {  // V_ij += v_i conj(v_j)
            sum[a][b].re = multiply_add(sum[a][b].re, v_i[b].re, v_j[a].re);
            sum[a][b].re = multiply_add(sum[a][b].re, v_i[b].im, v_j[a].im);
            sum[a][b].im = multiply_add(sum[a][b].im, v_i[b].im, v_j[a].re);
            sum[a][b].im = multiply_add(sum[a][b].im, -v_i[b].re, v_j[a].im);
          }
        }
      }
      __syncthreads();
    }
  }

  for (int a = 0; a < kPerThread; ++a) {
    for (int b = 0; b < kPerThread; ++b) {
      const std::int64_t j = tile.row * kTile + y + kEdge * a;
      const std::int64_t i = tile.column * kTile + x + kEdge * b;
      if (i > j || j >= gulp.n_inputs) continue;
      const std::int64_t n = gulp.n_inputs;
      Total* total = sums + 2 * (channel * (n * (n + 1) / 2) + j * (j + 1) / 2 + i);
      total[0] += sum[a][b].re;
      total[1] += sum[a][b].im;
    }
  }
}

template <class Read, class Total>
void launch(const CudaGulp& gulp, Total* sums, cudaStream_t stream) {
  const auto n_tiles = static_cast<int>(n_pairs((gulp.n_inputs + kTile - 1) / kTile));
  correlate_simt<Read><<<static_cast<unsigned>(n_tiles) * static_cast<unsigned>(gulp.n_channels),
                         kEdge * kEdge, 0, stream>>>(gulp, n_tiles, sums);
  RYLE_CUDA_LAUNCHED("correlate_simt");
}

}  // namespace

void launch_simt(SampleFormat format, const CudaGulp& gulp, ci64* integer, cf64* real,
                 cudaStream_t stream) {
  auto* whole = reinterpret_cast<long long*>(integer);
  auto* floating = reinterpret_cast<double*>(real);
  switch (format) {
    case SampleFormat::ci4:
      return launch<ReadCi4>(gulp, whole, stream);
    case SampleFormat::ci8:
      return launch<ReadCi8>(gulp, whole, stream);
    case SampleFormat::ci16:
      return launch<ReadCi16>(gulp, whole, stream);
    case SampleFormat::cf16:
      return launch<ReadCf16>(gulp, floating, stream);
    case SampleFormat::cf32:
      return launch<ReadCf32>(gulp, floating, stream);
    default:
      throw UnsupportedError("cuda:simt correlates ci4, ci8, ci16, cf16 and cf32, not " +
                             std::string(name(format)));
  }
}

}  // namespace ryle::correlate::detail
