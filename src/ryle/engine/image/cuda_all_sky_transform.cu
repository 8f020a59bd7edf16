// SPDX-License-Identifier: BSD-3-Clause
// Two-dimensional transforms of grids, rows then columns, in batches that fit shared memory; what
// is done with an image happens in the registers of the second pass.
#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/image/cuda_all_sky_kernels.cuh"

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
#if RYLE_MUTANT == 306
      a = a + float2{h.x + g.x - (h.w - g.w), h.y + g.y + (h.z + g.z)};
#else
      a = a + float2{h.x + g.x - (h.w - g.w), h.y - g.y + (h.z + g.z)};
#endif
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

__device__ inline float mean(float sum, double weight) {
  return weight > 0 ? static_cast<float>(sum / weight) : __int_as_float(0x7fc00000);
}

// First two planes from XX and YY.
__device__ inline void write_intensity(const FinishArgs& f, float* pixel, std::int64_t plane_size,
                                       float xx, float yy) {
  const bool sum = f.stokes && f.n_pols == 2;
  pixel[0] = sum ? 0.5f * (xx + yy) : xx;
  if (f.n_planes == 4) pixel[plane_size] = sum ? 0.5f * (xx - yy) : yy;
}

__device__ inline float2 scaled(float re, float im, float2 a) { return {re * a.x, im * a.y}; }

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
  const double weight[2] = {pairs_of(finish, bin, pair == 0 ? 0 : 2),
                            pairs_of(finish, bin, pair == 0 ? 1 : 2)};
  float* out = finish.pixels + (static_cast<std::int64_t>(bin) * finish.n_planes + 2 * pair) * size;
#pragma unroll
  for (int p = 0; p < kPerThread; ++p) {
    const int k = threadIdx.x + p * kFftThreads;
    if (k >= columns * n) break;
    const int y = k / columns, x = k - y * columns;
    float* pixel = out + static_cast<std::int64_t>(y) * n + first + x;
    const float re = mean(sum[p].x, weight[0]), im = mean(sum[p].y, weight[1]);
    if (pair == 0) {
      write_intensity(finish, pixel, size, re, im);
    } else {
      pixel[0] = re;
      pixel[size] = im;
    }
  }
}

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

// @eq image of the autocorrelations = sum_{dx, dy} L(|dx|, |dy|) cos(..) cos(..): L is even along
//     each axis, so it is taken out pixel by pixel without a transform. A block makes one row of
//     pixels.
__global__ void field_finish(int n, const float* planes, int n_slices, const float* lags,
                             int support, FinishArgs finish) {
  const int y = blockIdx.x, bin = blockIdx.y;
  const std::int64_t size = static_cast<std::int64_t>(n) * n;
  __shared__ float row[4][kMaxSupportDevice];
  __shared__ float lag[4 * kMaxSupportDevice * kMaxSupportDevice];
  extern __shared__ float cosines[];  // of 2 pi k / n
  for (int k = threadIdx.x; k < n; k += blockDim.x)
    cosines[k] = cospif(2.0f * static_cast<float>(k) / static_cast<float>(n));
  const double weight[3] = {pairs_of(finish, bin, 0), pairs_of(finish, bin, 1),
                            pairs_of(finish, bin, 2)};
  const int begin = bin * finish.n_channels_per_bin;
  const int end = min(begin + finish.n_channels_per_bin, finish.n_channels);
  for (int x0 = 0; x0 < n; x0 += blockDim.x) {
    const int x = x0 + threadIdx.x;
    float total[4] = {};
    for (int channel = begin; channel < end; ++channel) {
      // Under way while the lags are summed.
      float value[4] = {}, taper[4] = {};
      if (x < n) {
        const std::int64_t pixel = static_cast<std::int64_t>(y) * n + x;
        const float* tapers = finish.inverse_taper +
                              static_cast<std::int64_t>(channel) * finish.n_tapers * size + pixel;
#pragma unroll
        for (int plane = 0; plane < 4; ++plane) {
          taper[plane] = tapers[finish.n_tapers == 1 ? 0 : min(plane, 2) * size];
          for (int slice = 0; slice < n_slices; ++slice)
            value[plane] +=
                planes[((static_cast<std::int64_t>(channel) * n_slices + slice) * 4 + plane) *
                           size +
                       pixel];
        }
      }
      __syncthreads();
      const int n_lags = lags == nullptr ? 0 : 4 * support * support;
      for (int k = threadIdx.x; k < n_lags; k += blockDim.x)
        lag[k] = lags[static_cast<std::int64_t>(channel) * n_lags + k];
      __syncthreads();
      if (lags != nullptr && threadIdx.x < 4 * support) {
        const int plane = threadIdx.x / support, dx = threadIdx.x % support;
        const float* at = lag + plane * support * support;
        float sum = at[dx];
        const int step = abs(y - n / 2);  // cosines are even
        for (int dy = 1, turn = step; dy < support; ++dy, turn += step) {
          if (turn >= n) turn -= n;
          sum += 2 * at[dy * support + dx] * cosines[turn];
        }
        row[plane][dx] = sum;
      }
      __syncthreads();
      if (x >= n) continue;
      float turn[kMaxSupportDevice];  // twice the cosine of every lag
      const int step = abs(x - n / 2);
#pragma unroll
      for (int dx = 1, at = step; dx < kMaxSupportDevice; ++dx, at += step) {
        if (at >= n) at -= n;
        turn[dx] = 2 * cosines[at];
      }
#pragma unroll
      for (int plane = 0; plane < 4; ++plane) {
        if (lags != nullptr) {
          float autos = row[plane][0];
#pragma unroll
          for (int dx = 1; dx < kMaxSupportDevice; ++dx) {
            if (dx < support) autos += row[plane][dx] * turn[dx];
          }
#if RYLE_MUTANT != 307
          value[plane] -= autos;
#endif
        }
        total[plane] += value[plane] * taper[plane];
      }
    }
    if (x >= n) continue;
    float* pixel = finish.pixels + static_cast<std::int64_t>(bin) * finish.n_planes * size +
                   static_cast<std::int64_t>(y) * n + x;
    write_intensity(finish, pixel, size, mean(total[0], weight[0]), mean(total[1], weight[1]));
    if (finish.n_planes == 4) {
      pixel[2 * size] = mean(total[2], weight[2]);
      pixel[3 * size] = mean(total[3], weight[2]);
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
  const dim3 grid(static_cast<unsigned>(n_pixels), static_cast<unsigned>(n_bins));
  const auto shared = static_cast<std::size_t>(n_pixels) * sizeof(float);
  field_finish<<<grid, 128, shared, stream>>>(n_pixels, planes, n_slices, lags, support, finish);
  RYLE_CUDA_LAUNCHED("field_finish");
}

}  // namespace ryle::image::detail
