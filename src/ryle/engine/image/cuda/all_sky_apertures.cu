// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// Kernels for user apertures: gridding with complex k x k weights for each antenna and polarization
// (cuda/all_sky_apertures.cuh has the equations). As in cuda/all_sky_gather.cu a tile of 8 x 8 cells has one
// owner, so nothing is atomic and sums keep their order.
//
//   array       axes                                       type     content
//   apertures   [channel][antenna][y][x]                   float4   X re, im, Y re, im
//   values      [channel][spectrum][antenna], or           float4   X and Y
//               [channel][baseline][2]                     float4   four Hermitian products
//   grid        [channel][spectrum][y][x], or [..][2]      float4
//   lags        [channel][XX, YY, XY][2k-1][2k-1]          float2   of the autocorrelations
//   planes      [channel][slice][4][y][x]                  float    LSB^2 times gains
//
// No counters of these kernels are on record. docs/decisions/0015 says how the planner counts their operations.
// clang-format on
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/image/cuda/all_sky_apertures.cuh"

namespace ryle::image::detail {
namespace {

constexpr int kWarps = kGatherThreads / 32;
constexpr int kMaxSupportDevice = 9;
constexpr int kMaxLags = 2 * kMaxSupportDevice - 1;
constexpr int kSpectra = 2;  // a warp's share of the field kernel
constexpr unsigned kIndexMask = (1u << kIndexBits) - 1;
constexpr unsigned kOffsetMask = (1u << kOffsetBits) - 1;

__device__ inline int offset_x(unsigned entry) {
  return static_cast<int>(entry >> kIndexBits & kOffsetMask) - kOffsetBias;
}
__device__ inline int offset_y(unsigned entry) {
  return static_cast<int>(entry >> (kIndexBits + kOffsetBits) & kOffsetMask) - kOffsetBias;
}

__device__ inline void add_product(float2& sum, float2 a, float2 b) {
  sum.x = fmaf(a.x, b.x, fmaf(-a.y, b.y, sum.x));
  sum.y = fmaf(a.x, b.y, fmaf(a.y, b.x, sum.y));
}
// a conj(b)
__device__ inline void add_conjugated(float2& sum, float2 a, float2 b) {
  sum.x = fmaf(a.x, b.x, fmaf(a.y, b.y, sum.x));
  sum.y = fmaf(a.y, b.x, fmaf(-a.x, b.y, sum.y));
}
__device__ inline float2 x_of(float4 v) { return {v.x, v.y}; }
__device__ inline float2 y_of(float4 v) { return {v.z, v.w}; }

/// g_p(cell) = sum_a w_ap(cell) E_ap. A warp makes all cells of a tile for two spectra: a lane owns
/// cells (column 2 (lane % 4) and the next, row lane / 4), and a weight serves both spectra.
__global__ void __launch_bounds__(kGatherThreads)
    gather_fields(GatherArgs args, const float4* values, float4* grid) {
  const TileWork work = args.work[blockIdx.x];
  const int lane = threadIdx.x % 32;
  const int first = (static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) / 32) * kSpectra;
  if (first >= args.n_planes) return;
  const bool second = first + 1 < args.n_planes;
  const int column = 2 * (lane % 4), row = lane / 4, k = args.n_taps;
  const std::int64_t plane =
      static_cast<std::int64_t>(work.channel - args.first_channel) * args.n_planes + first;
  const float4* fields = values + plane * args.n_footprints;
  const float4* apertures = reinterpret_cast<const float4*>(args.weights) +
                            static_cast<std::int64_t>(work.channel) * args.n_footprints * k * k;
  float2 sum[kSpectra][2][2] = {};  // [spectrum][cell][pol]
#pragma unroll 4
  for (unsigned e = work.begin; e < work.end; ++e) {
    const unsigned entry = __ldg(args.entries + e);
    const unsigned index = entry & kIndexMask;
    const int x = column - offset_x(entry), y = row - offset_y(entry);
    float4 v[kSpectra] = {__ldg(fields + index), {0, 0, 0, 0}};
    if (second) v[1] = __ldg(fields + args.n_footprints + index);
    if (static_cast<unsigned>(y) >= static_cast<unsigned>(k)) continue;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      if (static_cast<unsigned>(x + c) >= static_cast<unsigned>(k)) continue;
      const float4 w = __ldg(apertures + (static_cast<int>(index) * k + y) * k + x + c);
#pragma unroll
      for (int s = 0; s < kSpectra; ++s) {
        add_product(sum[s][c][0], x_of(v[s]), x_of(w));
        add_product(sum[s][c][1], y_of(v[s]), y_of(w));
      }
    }
  }
  const int grid_y = work.tile_y * kTileCells + row;
  for (int s = 0; s < kSpectra && first + s < args.n_planes; ++s) {
    for (int c = 0; c < 2; ++c) {
      const int grid_x = work.tile_x * kTileCells + column + c;
      if (grid_x >= args.n_pixels || grid_y >= args.n_pixels) continue;
      grid[((plane + s) * args.n_pixels + grid_y) * args.n_pixels + grid_x] = {
          sum[s][c][0].x, sum[s][c][0].y, sum[s][c][1].x, sum[s][c][1].y};
    }
  }
}

/// Correlated functions of one baseline at one lag.
struct Correlated {
  float2 xx = {0, 0}, yy = {0, 0}, xy = {0, 0}, yx = {0, 0};
};

__device__ Correlated correlated_at(const float4* p, const float4* q, int k, int lag_x, int lag_y) {
  Correlated sum;
  const int begin_x = max(0, -lag_x), end_x = min(k, k - lag_x);
  const int begin_y = max(0, -lag_y), end_y = min(k, k - lag_y);
  for (int y = begin_y; y < end_y; ++y) {
    for (int x = begin_x; x < end_x; ++x) {
      const float4 a = p[(y + lag_y) * k + x + lag_x], b = q[y * k + x];
      add_conjugated(sum.xx, x_of(a), x_of(b));
      add_conjugated(sum.yy, y_of(a), y_of(b));
      add_conjugated(sum.xy, x_of(a), y_of(b));
      add_conjugated(sum.yx, y_of(a), x_of(b));
    }
  }
  return sum;
}

// The Hermitian planes that the transform wants: of a value at d it adds the mirror image.
__device__ void add_baseline(const Correlated& k, float4 linear, float4 cross, float4 (&sum)[2]) {
  float2 xx = x_of(sum[0]), yy = y_of(sum[0]), one = {0, 0}, two = {0, 0};
  add_product(xx, x_of(linear), k.xx);
  add_product(yy, y_of(linear), k.yy);
  add_product(one, {cross.x - cross.w, cross.y + cross.z}, k.xy);  // XY = U + i V
  add_product(two, {cross.x + cross.w, cross.y - cross.z}, k.yx);  // YX = U - i V
  sum[0] = {xx.x, xx.y, yy.x, yy.y};
  sum[1].x += 0.5f * (one.x + two.x);
  sum[1].y += 0.5f * (one.y + two.y);
  sum[1].z += 0.5f * (one.y - two.y);
  sum[1].w -= 0.5f * (one.x - two.x);
}

/// Adds V_ab K_ab to the grid, with K_ab made on the way. The warps of a thread block share the
/// list of a tile; the two apertures of a baseline are staged in shared memory, where every lane
/// correlates them at the lags of its two cells.
__global__ void __launch_bounds__(kGatherThreads)
    gather_products(GatherArgs args, const int2* baselines, int n_antennas, int support,
                    const float4* values, float4* grid) {
  __shared__ float4 stage[kWarps][2][kMaxSupportDevice * kMaxSupportDevice];
  __shared__ float4 sums[kWarps][64][2];
  const TileWork work = args.work[blockIdx.x];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int column = 2 * (lane % 4), row = lane / 4, cells = support * support;
  const std::int64_t local = work.channel - args.first_channel;
  values += local * args.n_footprints * 2;
  const float4* apertures = reinterpret_cast<const float4*>(args.weights) +
                            static_cast<std::int64_t>(work.channel) * n_antennas * cells;
  float4 sum[2][2] = {};
  for (unsigned e = work.begin + warp; e < work.end; e += kWarps) {
    const unsigned entry = __ldg(args.entries + e);
    const unsigned index = entry & kIndexMask;
    const int2 pair = __ldg(baselines + index);
    __syncwarp();  // the last baseline has been read
    for (int c = lane; c < cells; c += 32) {
      stage[warp][0][c] = __ldg(apertures + pair.x * cells + c);
      stage[warp][1][c] = __ldg(apertures + pair.y * cells + c);
    }
    __syncwarp();
    const float4 linear = __ldg(values + 2 * index), cross = __ldg(values + 2 * index + 1);
    const int x = column - offset_x(entry), y = row - offset_y(entry);
    if (static_cast<unsigned>(y) >= static_cast<unsigned>(args.n_taps)) continue;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      if (static_cast<unsigned>(x + c) >= static_cast<unsigned>(args.n_taps)) continue;
      add_baseline(correlated_at(stage[warp][0], stage[warp][1], support, x + c - (support - 1),
                                 y - (support - 1)),
                   linear, cross, sum[c]);
    }
  }
  for (int c = 0; c < 2; ++c) {
    for (int k = 0; k < 2; ++k) sums[warp][row * 8 + column + c][k] = sum[c][k];
  }
  __syncthreads();
  for (int item = threadIdx.x; item < 128; item += kGatherThreads) {
    const int k = item % 2, cell = item / 2;
    const int x = work.tile_x * kTileCells + cell % 8, y = work.tile_y * kTileCells + cell / 8;
    if (x >= args.n_pixels || y >= args.n_pixels) continue;
    float4 total = sums[0][cell][k];
    for (int w = 1; w < kWarps; ++w) {
      const float4 more = sums[w][cell][k];
      total = {total.x + more.x, total.y + more.y, total.z + more.z, total.w + more.w};
    }
    grid[((local * args.n_pixels + y) * args.n_pixels + x) * 2 + k] = total;
  }
}

struct Complex {
  double re = 0, im = 0;
};

/// Makes the lags that autocorrelations add to the grid. A warp makes one lag of one product: lanes
/// share the antennas, in a fixed order, in double.
__global__ void __launch_bounds__(kGatherThreads)
    lags_kernel(const double* powers, const float4* apertures, int n_antennas, int support,
                float2* lags) {
  const int channel = blockIdx.y, n = 2 * support - 1, cells = support * support;
  const int lane = threadIdx.x % 32;
  const int item = blockIdx.x * kWarps + threadIdx.x / 32;
  if (item >= 3 * n * n) return;
  const int product = item / (n * n);
  const int lag_y = item % (n * n) / n - (support - 1), lag_x = item % n - (support - 1);
  const bool x_first = product != 1, x_second = product == 0;
  Complex total;
  for (int a = lane; a < n_antennas; a += 32) {
    const std::int64_t at = static_cast<std::int64_t>(channel) * n_antennas + a;
    const float4* w = apertures + at * cells;
    Complex sum;
    for (int y = max(0, -lag_y); y < min(support, support - lag_y); ++y) {
      for (int x = max(0, -lag_x); x < min(support, support - lag_x); ++x) {
        const float4 v = w[(y + lag_y) * support + x + lag_x], u = w[y * support + x];
        const double vr = x_first ? v.x : v.z, vi = x_first ? v.y : v.w;
        const double ur = x_second ? u.x : u.z, ui = x_second ? u.y : u.w;
        sum.re += vr * ur + vi * ui;
        sum.im += vi * ur - vr * ui;
      }
    }
    const double* power = powers + 4 * at;
    const double re = power[product], im = product == 2 ? power[3] : 0;
    total.re += sum.re * re - sum.im * im;
    total.im += sum.re * im + sum.im * re;
  }
  for (int step = 16; step > 0; step /= 2) {
    total.re += __shfl_down_sync(0xffffffffu, total.re, step);
    total.im += __shfl_down_sync(0xffffffffu, total.im, step);
  }
  if (lane != 0) return;
  lags[static_cast<std::int64_t>(channel) * 3 * n * n + item] = {static_cast<float>(total.re),
                                                                 static_cast<float>(total.im)};
}

// exp(2 pi i lag (p - n/2) / n)
__device__ inline float2 turn_of(int lag, int p, int n) {
  float2 w;
  sincospif(2.0f * static_cast<float>(lag * (p - n / 2) % n) / static_cast<float>(n), &w.y, &w.x);
  return w;
}

/// Takes the image of the lags out of the planes. A thread block makes one row of pixels: first the
/// sums over rows of lags in shared memory, then pixel by pixel, without a transform. The image of
/// XY is complex.
/// @eq image = sum_d L(d) exp(2 pi i d.(p - G/2) / G)
__global__ void subtract_kernel(int n, const float2* lags, int support, int n_slices,
                                float* planes) {
  __shared__ float2 rows[3][kMaxLags];
  const int y = blockIdx.x, channel = blockIdx.y, n_lags = 2 * support - 1;
  const std::int64_t size = static_cast<std::int64_t>(n) * n;
  if (threadIdx.x < 3 * n_lags) {
    const int product = threadIdx.x / n_lags, column = threadIdx.x % n_lags;
    const float2* at =
        lags + (static_cast<std::int64_t>(channel) * 3 + product) * n_lags * n_lags + column;
    float2 sum = {0, 0};
    for (int v = 0; v < n_lags; ++v) {
      add_product(sum, at[v * n_lags], turn_of(v - (support - 1), y, n));
    }
    rows[product][column] = sum;
  }
  __syncthreads();
  float* plane = planes + static_cast<std::int64_t>(channel) * n_slices * 4 * size +
                 static_cast<std::int64_t>(y) * n;
  for (int x = threadIdx.x; x < n; x += blockDim.x) {
    float2 sum[3] = {};
    for (int u = 0; u < n_lags; ++u) {
      const float2 turn = turn_of(u - (support - 1), x, n);
#pragma unroll
      for (int product = 0; product < 3; ++product) {
        add_product(sum[product], rows[product][u], turn);
      }
    }
    plane[x] -= sum[0].x;
    plane[size + x] -= sum[1].x;
    plane[2 * size + x] -= sum[2].x;
    plane[3 * size + x] -= sum[2].y;
  }
}

}  // namespace

void launch_gather_aperture_fields(const GatherArgs& args, const float4* values, float4* grid,
                                   cudaStream_t stream) {
  if (args.n_work == 0) return;
  const int shares = (args.n_planes + kSpectra - 1) / kSpectra;
  const int warps = shares < kWarps ? shares : kWarps;
  const dim3 blocks(static_cast<unsigned>(args.n_work),
                    static_cast<unsigned>((shares + warps - 1) / warps));
  gather_fields<<<blocks, static_cast<unsigned>(32 * warps), 0, stream>>>(args, values, grid);
  RYLE_CUDA_LAUNCHED("gather_fields of apertures");
}

void launch_gather_aperture_products(const GatherArgs& args, const int2* baselines, int n_antennas,
                                     int support, const float4* values, float4* grid,
                                     cudaStream_t stream) {
  if (args.n_work == 0) return;
  gather_products<<<static_cast<unsigned>(args.n_work), kGatherThreads, 0, stream>>>(
      args, baselines, n_antennas, support, values, grid);
  RYLE_CUDA_LAUNCHED("gather_products of apertures");
}

void launch_aperture_lags(const double* powers, const float* weights, int n_antennas, int support,
                          int n_channels, float2* lags, cudaStream_t stream) {
  const int n = 2 * support - 1;
  const dim3 grid(static_cast<unsigned>((3 * n * n + kWarps - 1) / kWarps),
                  static_cast<unsigned>(n_channels));
  lags_kernel<<<grid, kGatherThreads, 0, stream>>>(powers, reinterpret_cast<const float4*>(weights),
                                                   n_antennas, support, lags);
  RYLE_CUDA_LAUNCHED("lags_kernel of apertures");
}

void launch_subtract_lags(int n_pixels, const float2* lags, int support, int n_channels,
                          int n_slices, float* planes, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(n_pixels), static_cast<unsigned>(n_channels));
  subtract_kernel<<<grid, 128, 0, stream>>>(n_pixels, lags, support, n_slices, planes);
  RYLE_CUDA_LAUNCHED("subtract_kernel of apertures");
}

}  // namespace ryle::image::detail
