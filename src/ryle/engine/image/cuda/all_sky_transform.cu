// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// Two-dimensional transforms of grids, rows then columns, and what turns transforms into pixels.
//   image(p) = sum over cells of grid(cell) exp(2 pi i cell . p / G), divided by the taper and by the number of pairs
//
//   array                 axes                                 type     content
//   grid                  [transform][y][x][4 or 8 floats]     float4   X and Y of a spectrum, or four products
//   rows                  [transform][pol or pair][y][x]       float2   after the first pass
//   buffer, second        [line of the batch][point, padded]   float2   shared memory; 4,096 points, or twice that
//   planes                [channel][slice][4][y][x]            float    |B_x|^2, |B_y|^2, Re and Im B_x conj(B_y)
//   finish.inverse_taper  [channel or 1][n_tapers][y][x]       float    NaN below the horizon
//   finish.pixels         [bin][plane][y][x]                   float    LSB^2 for each pair of antennas
//
// Who does what: a thread block takes as many whole lines (rows, then columns) as fit its batch, brings them to shared
// memory, runs the Stockham stages there (cuda/all_sky_fft.cuh) and writes them. What is done with an image happens
// in the registers of the second pass, so that an image is written once. docs/decisions/0006 records 44 us for
// field_finish at 60 MHz (256 antennas, 132 channels, 128 x 128 pixels) and no counters of the others.
// clang-format on
#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/image/cuda/all_sky_kernels.cuh"

namespace ryle::image::detail {
namespace {

constexpr int kPoints = 4096;                      // of a batch
constexpr int kPerThread = kPoints / kFftThreads;  // of a batch
constexpr int kSharedBytes = 2 * 8 * (kPoints + kPoints / 16 + 16);

int batch_of(int n) { return std::max(1, std::min(16, kPoints / n)); }

__device__ inline float checkerboard(int y, int x) { return (y + x) % 2 == 0 ? 1.0f : -1.0f; }

/// @eq A = (H_p + conj(H_p mirrored)) + i (H_q + conj(H_q mirrored)): real images of p and q are
/// the
///     real and imaginary part of its transform. Pairs: XX, YY and Re XY*, Im XY*.
struct ProductLoader {
  const float4* grid;
  int n;
  int n_channels;
  int per_transform;
  __device__ void load(int transform, int y, int x, float2 (&out)[2]) const {
    const int mirror_y = y == 0 ? 0 : n - y, mirror_x = x == 0 ? 0 : n - x;
    const int begin = transform * per_transform;
    const int end = min(begin + per_transform, n_channels);
    float2 a = {0, 0}, b = {0, 0};
    for (int channel = begin; channel < end; ++channel) {
      const float4* plane = grid + static_cast<std::int64_t>(channel) * n * n * 2;
      const float4* at = plane + (static_cast<std::int64_t>(y) * n + x) * 2;
      const float4* mirrored = plane + (static_cast<std::int64_t>(mirror_y) * n + mirror_x) * 2;
      const float4 h = at[0], g = mirrored[0], u = at[1], v = mirrored[1];
      a = a + float2{h.x + g.x - (h.w - g.w), h.y - g.y + (h.z + g.z)};
      b = b + float2{u.x + v.x - (u.w - v.w), u.y - v.y + (u.z + v.z)};
    }
    out[0] = checkerboard(y, x) * a;
    out[1] = checkerboard(y, x) * b;
  }
};

struct FieldLoader {
  const float4* grid;
  int n;
  __device__ void load(int transform, int y, int x, float2 (&out)[2]) const {
    const float4 v = grid[(static_cast<std::int64_t>(transform) * n + y) * n + x];
    const float sign = checkerboard(y, x);
    out[0] = {sign * v.x, sign * v.y};
    out[1] = {sign * v.z, sign * v.w};
  }
};

/// First pass: rows of two grids a line, loaded and signed by `loader`, to rows
/// [transform][2][y][x].
template <class Loader>
__global__ void __launch_bounds__(kFftThreads)
    transform_rows(GridFft fft, Loader loader, int rows_per_block, float2* rows) {
  extern __shared__ __align__(16) float2 buffer[];
  float2* const second = buffer + 2 * rows_per_block * fft_pitch(fft.n);
  const int n = fft.n;
  const int transform = blockIdx.y;
  const int first = blockIdx.x * rows_per_block;
  const int n_rows = min(rows_per_block, n - first);
  for (int k = threadIdx.x; k < n_rows * n; k += kFftThreads) {
    const int row = k / n, x = k - row * n;
    float2 value[2];
    loader.load(transform, first + row, x, value);
    buffer[fft_at(2 * row, x, n)] = value[0];
    buffer[fft_at(2 * row + 1, x, n)] = value[1];
  }
  const float2* done = run_fft(fft, 2 * n_rows, buffer, second);
  for (int k = threadIdx.x; k < 2 * n_rows * n; k += kFftThreads) {
    const int row = k / n, x = k - row * n;  // row = 2 * (row of the grid) + pair
    rows[((static_cast<std::int64_t>(transform) * 2 + row % 2) * n + first + row / 2) * n + x] =
        done[fft_at(row, x, n)];
  }
}

/// `columns` columns from `first` of one plane, transformed; columns are rows of the buffers.
__device__ const float2* columns_of(const GridFft& fft, const float2* plane, int first, int columns,
                                    float2* buffer, float2* second) {
  const int n = fft.n;
  __syncthreads();  // what an earlier transform left has been read
  for (int k = threadIdx.x; k < columns * n; k += kFftThreads) {
    const int y = k / columns, x = k - y * columns;
    buffer[fft_at(x, y, n)] = plane[static_cast<std::int64_t>(y) * n + first + x];
  }
  return run_fft(fft, columns, buffer, second);
}

__device__ inline double pairs_of(const FinishArgs& f, int bin, int product) {
  double sum = 0;
  const int end = min((bin + 1) * f.n_channels_per_bin, f.n_channels);
  for (int channel = bin * f.n_channels_per_bin; channel < end; ++channel) {
    sum += f.counted != nullptr ? static_cast<double>(f.counted[3 * channel + product])
                                : f.pairs[3 * channel + product];
  }
  return sum * f.times;
}

// NaN without pairs. A division in double for every pixel took longer than all its memory.
__device__ inline double inverse_pairs(const FinishArgs& f, int bin, int product) {
  const double weight = pairs_of(f, bin, product);
  return weight > 0 ? 1 / weight : static_cast<double>(__int_as_float(0x7fc00000));
}

__device__ inline float mean(float sum, double inverse) {
  return static_cast<float>(sum * inverse);
}

// First two planes from XX and YY.
__device__ inline void write_intensity(const FinishArgs& f, float* pixel, std::int64_t plane_size,
                                       float xx, float yy) {
  const bool sum = f.stokes && f.n_pols == 2;
  pixel[0] = sum ? 0.5f * (xx + yy) : xx;
  if (f.n_planes == 4) pixel[plane_size] = sum ? 0.5f * (xx - yy) : yy;
}

__device__ inline float2 scaled(float re, float im, float2 a) { return {re * a.x, im * a.y}; }

/// Second pass of visibility imaging: columns, then taper, sum over the transforms of a bin, mean
/// over pairs, and pixels. A thread block makes some columns of one pair of images of one bin.
template <int Tapers>  // FinishArgs::n_tapers
__global__ void __launch_bounds__(kFftThreads)
    product_columns(GridFft fft, const float2* rows, int columns_per_block, int transforms_per_bin,
                    int n_transforms, FinishArgs finish) {
  extern __shared__ __align__(16) float2 buffer[];
  float2* const second = buffer + columns_per_block * fft_pitch(fft.n);
  const int n = fft.n, pair = blockIdx.y, bin = blockIdx.z;
  const int first = blockIdx.x * columns_per_block;
  const int columns = min(columns_per_block, n - first);
  const std::int64_t size = static_cast<std::int64_t>(n) * n;
  float2 sum[kPerThread] = {};
  const int begin = bin * transforms_per_bin;
  const int end = min(begin + transforms_per_bin, n_transforms);
  for (int t = begin; t < end; ++t) {
    const float2* done = columns_of(fft, rows + (static_cast<std::int64_t>(t) * 2 + pair) * size,
                                    first, columns, buffer, second);
    const float* taper = finish.inverse_taper + (finish.taper_per_channel ? t : 0) * Tapers * size;
    // The two images of a pair: XX and YY, or both XY.
    const std::int64_t re = Tapers == 1 || pair == 0 ? 0 : 2 * size;
    const std::int64_t im = Tapers == 1 ? 0 : pair == 0 ? size : 2 * size;
#pragma unroll
    for (int p = 0; p < kPerThread; ++p) {
      const int k = threadIdx.x + p * kFftThreads;
      if (k >= columns * n) break;
      const int y = k / columns, x = k - y * columns;
      const float* at = taper + static_cast<std::int64_t>(y) * n + first + x;
      sum[p] = sum[p] + scaled(at[re], at[im], done[fft_at(x, y, n)]);
    }
  }
  const double inverse[2] = {inverse_pairs(finish, bin, pair == 0 ? 0 : 2),
                             inverse_pairs(finish, bin, pair == 0 ? 1 : 2)};
  float* out = finish.pixels + (static_cast<std::int64_t>(bin) * finish.n_planes + 2 * pair) * size;
#pragma unroll
  for (int p = 0; p < kPerThread; ++p) {
    const int k = threadIdx.x + p * kFftThreads;
    if (k >= columns * n) break;
    const int y = k / columns, x = k - y * columns;
    float* pixel = out + static_cast<std::int64_t>(y) * n + first + x;
    const float re = mean(sum[p].x, inverse[0]), im = mean(sum[p].y, inverse[1]);
    if (pair == 0) {
      write_intensity(finish, pixel, size, re, im);
    } else {
      pixel[0] = re;
      pixel[size] = im;
    }
  }
}

/// Second pass of E-field imaging: columns of B_x and B_y of every spectrum, products, sums over
/// spectra in registers, added to planes. A thread block makes some columns of one channel.
__global__ void __launch_bounds__(kFftThreads)
    field_columns(GridFft fft, const float2* rows, int columns_per_block, int n_spectra,
                  float* planes) {
  extern __shared__ __align__(16) float2 buffer[];
  const int n = fft.n, channel = blockIdx.y;
  float2* const second = buffer + columns_per_block * fft_pitch(n);
  const int first = blockIdx.x * columns_per_block;
  const int columns = min(columns_per_block, n - first);
  const std::int64_t size = static_cast<std::int64_t>(n) * n;
  float4 sum[kPerThread] = {};
  for (int s = 0; s < n_spectra; ++s) {
    const float2* at = rows + (static_cast<std::int64_t>(channel) * n_spectra + s) * 2 * size;
    const float2* done = columns_of(fft, at, first, columns, buffer, second);
    float2 b_x[kPerThread];
#pragma unroll
    for (int p = 0; p < kPerThread; ++p) {
      const int k = threadIdx.x + p * kFftThreads;
      if (k < columns * n) b_x[p] = done[fft_at(k % columns, k / columns, n)];
    }
    done = columns_of(fft, at + size, first, columns, buffer, second);
#pragma unroll
    for (int p = 0; p < kPerThread; ++p) {
      const int k = threadIdx.x + p * kFftThreads;
      if (k >= columns * n) break;
      const float2 x = b_x[p], y = done[fft_at(k % columns, k / columns, n)];
      sum[p].x += x.x * x.x + x.y * x.y;
      sum[p].y += y.x * y.x + y.y * y.y;
      sum[p].z += x.x * y.x + x.y * y.y;
      sum[p].w += x.y * y.x - x.x * y.y;
    }
  }
  float* out = planes + static_cast<std::int64_t>(channel) * 4 * size;
#pragma unroll
  for (int p = 0; p < kPerThread; ++p) {
    const int k = threadIdx.x + p * kFftThreads;
    if (k >= columns * n) break;
    float* pixel = out + static_cast<std::int64_t>(k / columns) * n + first + k % columns;
    pixel[0] += sum[p].x;
    pixel[size] += sum[p].y;
    pixel[2 * size] += sum[p].z;
    pixel[3 * size] += sum[p].w;
  }
}

constexpr int kMaxSupportDevice = 9;
constexpr int kFinishRows = 8;    // most of a block, one a warp
constexpr int kFinishPixels = 4;  // of a lane

// Cosines of multiples meet no bank twice.
__host__ __device__ inline int cosine_at(int k) { return k + k / 32; }

/// What a block knows of a channel's autocorrelations: sums over the rows of lags.
struct AutoRows {
  float lag[4 * kMaxSupportDevice * kMaxSupportDevice];
  float row[kFinishRows][4][kMaxSupportDevice];
};

// @eq image of the autocorrelations = sum_{dx, dy} L(|dx|, |dy|) cos(..) cos(..): L is even along
//     each axis, so it is taken out pixel by pixel without a transform. First the sums over dy.
__device__ inline void make_auto_rows(AutoRows& autos, const float* lags, int support, int n,
                                      int first_y, const float* cosines) {
  const int per_row = 4 * support, n_rows = blockDim.x / 32;
  __syncthreads();  // the rows before have been read
  for (int k = threadIdx.x; k < per_row * support; k += blockDim.x) autos.lag[k] = lags[k];
  __syncthreads();
  for (int k = threadIdx.x; k < n_rows * per_row; k += blockDim.x) {
    const int r = k / per_row, plane = k % per_row / support, dx = k % support;
    const float* at = autos.lag + plane * support * support;
    float sum = at[dx];
    const int step = min(abs(first_y + r - n / 2), n - 1);  // cosines are even
    for (int dy = 1, turn = step; dy < support; ++dy, turn += step) {
      if (turn >= n) turn -= n;
      sum += 2 * at[dy * support + dx] * cosines[cosine_at(turn)];
    }
    autos.row[r][plane][dx] = sum;
  }
  __syncthreads();
}

// ... then those over dx, for a pixel.
__device__ inline void subtract_autos(const float (&row)[4][kMaxSupportDevice], int support, int n,
                                      int x, const float* cosines, float (&value)[4]) {
  float autos[4];
#pragma unroll
  for (int plane = 0; plane < 4; ++plane) autos[plane] = row[plane][0];
  const int step = abs(x - n / 2);
#pragma unroll
  for (int dx = 1, at = step; dx < kMaxSupportDevice; ++dx, at += step) {
    if (dx >= support) break;
    if (at >= n) at -= n;
    const float turn = 2 * cosines[cosine_at(at)];
#pragma unroll
    for (int plane = 0; plane < 4; ++plane) autos[plane] += row[plane][dx] * turn;
  }
#pragma unroll
  for (int plane = 0; plane < 4; ++plane) value[plane] -= autos[plane];
}

/// What a lane has under way of a channel: sums of its pixels and their tapers.
template <int Tapers>
struct LanePixels {
  float value[kFinishPixels][4] = {};
  float taper[kFinishPixels][Tapers] = {};

  // `n_there` of its pixels, 32 apart, lie in the row.
  __device__ void fetch(const float* planes, int n_slices, const float* tapers, std::int64_t size,
                        int n_there) {
    for (int slice = 0; slice < n_slices; ++slice) {
#pragma unroll
      for (int j = 0; j < kFinishPixels; ++j) {
#pragma unroll
        for (int plane = 0; plane < 4; ++plane)
          if (j < n_there) value[j][plane] += planes[(slice * 4 + plane) * size + 32 * j];
      }
    }
#pragma unroll
    for (int j = 0; j < kFinishPixels; ++j) {
#pragma unroll
      for (int t = 0; t < Tapers; ++t)
        if (j < n_there) taper[j][t] = tapers[t * size + 32 * j];
    }
  }
};

/// Planes to pixels of E-field imaging: slices are added, autocorrelations taken out (lags),
/// channels of a bin added with their tapers, and the mean over pairs formed. A warp makes a row of
/// pixels; all that a lane needs of a channel is under way while the block sums the rows of lags.
template <int Tapers>  // FinishArgs::n_tapers
__global__ void __launch_bounds__(32 * kFinishRows, Tapers == 1 ? 3 : 2)
    field_finish(int n, const float* planes, int n_slices, const float* lags, int support,
                 FinishArgs finish) {
  extern __shared__ float cosines[];  // of 2 pi k / n
  __shared__ AutoRows autos;
  __shared__ double inverse[3];
  const int first_y = blockIdx.x * (blockDim.x / 32), bin = blockIdx.y;
  const int warp = threadIdx.x / 32, y = first_y + warp;
  const std::int64_t size = static_cast<std::int64_t>(n) * n;
  const int begin = bin * finish.n_channels_per_bin;
  const int end = min(begin + finish.n_channels_per_bin, finish.n_channels);
  for (int x0 = 0; x0 < n; x0 += 32 * kFinishPixels) {
    const int first_x = x0 + threadIdx.x % 32;
    const int n_there = y < n ? (n - first_x + 31) / 32 : 0;  // some beyond kFinishPixels
    const std::int64_t pixel = static_cast<std::int64_t>(y) * n + first_x;
    float total[kFinishPixels][4] = {};
    for (std::int64_t channel = begin; channel < end; ++channel) {
      LanePixels<Tapers> lane;
      lane.fetch(planes + channel * n_slices * 4 * size + pixel, n_slices,
                 finish.inverse_taper + channel * Tapers * size + pixel, size, n_there);
      if (x0 == 0 && channel == begin) {  // while the first pixels come
        for (int k = threadIdx.x; k < n; k += blockDim.x)
          cosines[cosine_at(k)] = cospif(2.0f * static_cast<float>(k) / static_cast<float>(n));
        if (threadIdx.x < 3) inverse[threadIdx.x] = inverse_pairs(finish, bin, threadIdx.x);
      }
      if (lags != nullptr) {
        make_auto_rows(autos, lags + channel * 4 * support * support, support, n, first_y, cosines);
      }
#pragma unroll
      for (int j = 0; j < kFinishPixels; ++j) {
        if (j >= n_there) break;
        if (lags != nullptr)
          subtract_autos(autos.row[warp], support, n, first_x + 32 * j, cosines, lane.value[j]);
#pragma unroll
        for (int plane = 0; plane < 4; ++plane)
          total[j][plane] += lane.value[j][plane] * lane.taper[j][min(plane, Tapers - 1)];
      }
    }
    __syncthreads();  // the inverses are there
    float* out = finish.pixels + static_cast<std::int64_t>(bin) * finish.n_planes * size + pixel;
#pragma unroll
    for (int j = 0; j < kFinishPixels; ++j) {
      if (j >= n_there) break;
      float* to = out + 32 * j;
      write_intensity(finish, to, size, mean(total[j][0], inverse[0]),
                      mean(total[j][1], inverse[1]));
      if (finish.n_planes == 4) {
        to[2 * size] = mean(total[j][2], inverse[2]);
        to[3 * size] = mean(total[j][3], inverse[2]);
      }
    }
  }
}

int shared_bytes(int n, int batch) { return 2 * 8 * batch * fft_pitch(n); }

template <class Kernel>
void allow_shared(Kernel kernel) {
  RYLE_CUDA(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 2 * kSharedBytes));
}

template <class Loader>
void launch_rows(const GridFft& fft, const Loader& loader, int n_transforms, float2* rows,
                 cudaStream_t stream) {
  const int per_block = std::max(1, batch_of(fft.n) / 2);
  const dim3 grid(static_cast<unsigned>((fft.n + per_block - 1) / per_block),
                  static_cast<unsigned>(n_transforms));
  transform_rows<<<grid, kFftThreads, shared_bytes(fft.n, 2 * per_block), stream>>>(
      fft, loader, per_block, rows);
  RYLE_CUDA_LAUNCHED("transform_rows");
}

}  // namespace

void prepare_transforms() {
  allow_shared(transform_rows<ProductLoader>);
  allow_shared(transform_rows<FieldLoader>);
  allow_shared(product_columns<1>);
  allow_shared(product_columns<3>);
  allow_shared(field_columns);
}

void launch_product_rows(const GridFft& fft, const float4* grid, int n_channels, int per_transform,
                         int n_transforms, float2* rows, cudaStream_t stream) {
  launch_rows(fft, ProductLoader{grid, fft.n, n_channels, per_transform}, n_transforms, rows,
              stream);
}

void launch_field_rows(const GridFft& fft, const float4* grid, int n_transforms, float2* rows,
                       cudaStream_t stream) {
  launch_rows(fft, FieldLoader{grid, fft.n}, n_transforms, rows, stream);
}

void launch_product_columns(const GridFft& fft, const float2* rows, int transforms_per_bin,
                            int n_transforms, int n_bins, const FinishArgs& finish,
                            cudaStream_t stream) {
  const int per_block = batch_of(fft.n);
  const dim3 grid(static_cast<unsigned>((fft.n + per_block - 1) / per_block),
                  finish.n_planes == 4 ? 2u : 1u, static_cast<unsigned>(n_bins));
  const auto kernel = finish.n_tapers == 1 ? product_columns<1> : product_columns<3>;
  kernel<<<grid, kFftThreads, shared_bytes(fft.n, per_block), stream>>>(
      fft, rows, per_block, transforms_per_bin, n_transforms, finish);
  RYLE_CUDA_LAUNCHED("product_columns");
}

void launch_field_columns(const GridFft& fft, const float2* rows, int n_channels, int n_spectra,
                          float* planes, cudaStream_t stream) {
  const int per_block = batch_of(fft.n);
  const dim3 grid(static_cast<unsigned>((fft.n + per_block - 1) / per_block),
                  static_cast<unsigned>(n_channels));
  field_columns<<<grid, kFftThreads, shared_bytes(fft.n, per_block), stream>>>(fft, rows, per_block,
                                                                               n_spectra, planes);
  RYLE_CUDA_LAUNCHED("field_columns");
}

void launch_field_finish(int n_pixels, const float* planes, int n_slices, const float* lags,
                         int support, const FinishArgs& finish, cudaStream_t stream) {
  const int n_bins =
      (finish.n_channels + finish.n_channels_per_bin - 1) / finish.n_channels_per_bin;
  // Few rows of pixels are spread over the multiprocessors.
  constexpr int kBlocksWanted = 264;
  int rows = kFinishRows;
  while (rows > 1 && n_pixels / rows * n_bins < kBlocksWanted) rows /= 2;
  const dim3 grid(static_cast<unsigned>((n_pixels + rows - 1) / rows),
                  static_cast<unsigned>(n_bins));
  const auto shared = static_cast<std::size_t>(cosine_at(n_pixels)) * sizeof(float);
  const auto kernel = finish.n_tapers == 1 ? field_finish<1> : field_finish<3>;
  kernel<<<grid, static_cast<unsigned>(32 * rows), shared, stream>>>(n_pixels, planes, n_slices,
                                                                     lags, support, finish);
  RYLE_CUDA_LAUNCHED("field_finish");
}

}  // namespace ryle::image::detail
