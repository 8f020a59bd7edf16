// SPDX-License-Identifier: BSD-3-Clause
// Voltages as they come: calibrated fields per spectrum, and the powers of the autocorrelations.
#include <cstdint>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/image/cuda_all_sky_kernels.cuh"
#include "ryle/engine/image/cuda_all_sky_voltages.cuh"
#include "ryle/engine/image/geometry.hpp"

namespace ryle::image::detail {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    fields_kernel(FieldBlocks blocks, VisArray array, int first_channel, int first_spectrum,
                  int n_spectra, float4* fields) {
  const int local = blockIdx.y, channel = first_channel + local;
  const std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (k >= static_cast<std::int64_t>(n_spectra) * array.n_antennas) return;
  // Spectra are the fast index of a load (they share a sector), antennas that of the store; L1
  // joins what neither order coalesces.
  const int s = static_cast<int>(k / array.n_antennas), a = static_cast<int>(k % array.n_antennas);
  const float2* factor =
      array.factor + (static_cast<std::int64_t>(channel) * array.n_antennas + a) * 2;
  float2 e[2];
#pragma unroll
  for (int pol = 0; pol < 2; ++pol) {
    const int input = array.input[2 * a + pol];
    e[pol] = {0, 0};
    if (input < 0) continue;
    const float2 f = factor[pol];
    if (f.x == 0 && f.y == 0) continue;
    const int2 v = sample(blocks, channel, first_spectrum + s, input);
    e[pol] = times(f, float2{static_cast<float>(v.x), static_cast<float>(v.y)});
  }
  fields[(static_cast<std::int64_t>(local) * n_spectra + s) * array.n_antennas + a] = {
      e[0].x, e[0].y, e[1].x, e[1].y};
}

// A warp owns an antenna of a channel; lanes take four spectra at a time. Integer sums of one call:
// |v|^2 <= 2 * 128^2, so int32 holds 2^16 spectra a lane and int64 all.
__global__ void __launch_bounds__(kThreads)
    powers_kernel(FieldBlocks blocks, VisArray array, int n_spectra, double* powers) {
  const int channel = blockIdx.y;
  const int a = blockIdx.x * (kThreads / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (a >= array.n_antennas) return;
  const int input_x = array.input[2 * a], input_y = array.input[2 * a + 1];
  long long sum[4] = {};
  for (int t = 4 * lane; t < n_spectra; t += 128) {
    int4x2 x{}, y{};
    if (input_x >= 0) x = four_samples(blocks, channel, t, input_x);
    if (input_y >= 0) y = four_samples(blocks, channel, t, input_y);
    int part[4] = {};
#pragma unroll
    for (int s = 0; s < 4; ++s) {  // beyond n_spectra the blocks hold zeros
      part[0] += x.re[s] * x.re[s] + x.im[s] * x.im[s];
      part[1] += y.re[s] * y.re[s] + y.im[s] * y.im[s];
      part[2] += x.re[s] * y.re[s] + x.im[s] * y.im[s];
      part[3] += x.im[s] * y.re[s] - x.re[s] * y.im[s];
    }
#pragma unroll
    for (int p = 0; p < 4; ++p) sum[p] += part[p];
  }
#pragma unroll
  for (int p = 0; p < 4; ++p) {
    for (int step = 16; step > 0; step /= 2) sum[p] += __shfl_down_sync(0xffffffffu, sum[p], step);
  }
  if (lane != 0) return;
  const std::int64_t at = static_cast<std::int64_t>(channel) * array.n_antennas + a;
  const float2 f = array.factor[2 * at], g = array.factor[2 * at + 1];
  const double fx = f.x, fy = f.y, gx = g.x, gy = g.y;
  const double cross_re = fx * gx + fy * gy, cross_im = fy * gx - fx * gy;  // f conj(g)
  const double re = static_cast<double>(sum[2]), im = static_cast<double>(sum[3]);
  powers[4 * at] += (fx * fx + fy * fy) * static_cast<double>(sum[0]);
  powers[4 * at + 1] += (gx * gx + gy * gy) * static_cast<double>(sum[1]);
  powers[4 * at + 2] += cross_re * re - cross_im * im;
  powers[4 * at + 3] += cross_re * im + cross_im * re;
}

// What one antenna adds to a lag is a product of a function of the rows and one of the columns: a
// block makes those of kLagAntennas antennas once, in shared memory, and then all lags of its
// channel of them. A warp sums a lag over the antennas in a fixed order.
constexpr int kLagAntennas = 128;

struct LagTerms {
  double column[kMaxSupport][kLagAntennas];  // sum_i w_x(i) w_x(i + d)
  double row[kMaxSupport][kLagAntennas];
  double power[4][kLagAntennas];
};

__device__ void make_terms(LagTerms& terms, const double* powers, const float* weights,
                           std::int64_t first, int n, int support) {
  for (int k = threadIdx.x; k < 2 * kLagAntennas; k += kThreads) {
    const int a = k % kLagAntennas, axis = k / kLagAntennas;
    if (a >= n) continue;
    const float* w = weights + ((first + a) * 2 + axis) * support;
    double(*term)[kLagAntennas] = axis == 0 ? terms.column : terms.row;
    for (int d = 0; d < support; ++d) {
      double sum = 0;
      for (int i = 0; i + d < support; ++i) sum += static_cast<double>(w[i]) * w[i + d];
      term[d][a] = sum;
    }
  }
  for (int k = threadIdx.x; k < 4 * n; k += kThreads)
    terms.power[k % 4][k / 4] = powers[4 * first + k];
}

__global__ void __launch_bounds__(kThreads) lags_kernel(const double* powers, const float* weights,
                                                        int n_antennas, int support, float* lags) {
  __shared__ LagTerms terms;
  __shared__ double totals[4 * kMaxSupport * kMaxSupport];
  const int cells = support * support;
  const int lane = threadIdx.x % 32;
  for (int begin = 0; begin < n_antennas; begin += kLagAntennas) {
    const int n = min(kLagAntennas, n_antennas - begin);
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * n_antennas + begin;
    __syncthreads();
    make_terms(terms, powers, weights, first, n, support);
    __syncthreads();
    for (int k = threadIdx.x / 32; k < 4 * cells; k += kThreads / 32) {
      const int plane = k / cells, dy = k % cells / support, dx = k % support;
      double total = 0;
      for (int a = lane; a < n; a += 32)
        total += terms.power[plane][a] * terms.column[dx][a] * terms.row[dy][a];
      for (int step = 16; step > 0; step /= 2) total += __shfl_down_sync(0xffffffffu, total, step);
      if (lane == 0) totals[k] = begin == 0 ? total : totals[k] + total;
    }
  }
  __syncthreads();
  float* out = lags + static_cast<std::int64_t>(blockIdx.x) * 4 * cells;
  for (int k = threadIdx.x; k < 4 * cells; k += kThreads) out[k] = static_cast<float>(totals[k]);
}

}  // namespace

void launch_fields(const FieldBlocks& blocks, const VisArray& array, int first_channel,
                   int n_channels, int first_spectrum, int n_spectra, float4* fields,
                   cudaStream_t stream) {
  const std::int64_t n = static_cast<std::int64_t>(n_spectra) * array.n_antennas;
  const dim3 grid(static_cast<unsigned>((n + kThreads - 1) / kThreads),
                  static_cast<unsigned>(n_channels));
  fields_kernel<<<grid, kThreads, 0, stream>>>(blocks, array, first_channel, first_spectrum,
                                               n_spectra, fields);
  RYLE_CUDA_LAUNCHED("fields_kernel");
}

void launch_powers(const FieldBlocks& blocks, const VisArray& array, int n_channels, int n_spectra,
                   double* powers, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((array.n_antennas + kThreads / 32 - 1) / (kThreads / 32)),
                  static_cast<unsigned>(n_channels));
  powers_kernel<<<grid, kThreads, 0, stream>>>(blocks, array, n_spectra, powers);
  RYLE_CUDA_LAUNCHED("powers_kernel");
}

void launch_auto_lags(const double* powers, const float* weights, int n_antennas, int support,
                      int n_channels, float* lags, cudaStream_t stream) {
  const auto n_blocks = static_cast<unsigned>(n_channels);
  lags_kernel<<<n_blocks, kThreads, 0, stream>>>(powers, weights, n_antennas, support, lags);
  RYLE_CUDA_LAUNCHED("lags_kernel");
}

}  // namespace ryle::image::detail
