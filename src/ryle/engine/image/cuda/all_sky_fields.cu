// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// Kernels that read voltages as they come: calibrated fields E = c v of every spectrum, the powers of the
// autocorrelations, and the lags that these powers add to a grid.
//
//   array         axes                                    type       unit
//   blocks        [channel][block][input][128 bytes]      ci4, ci8   LSB
//   array.factor  [channel][antenna][pol]                 float2     gain times phase of the height, 0 = not used
//   fields        [channel][spectrum][antenna]            float4     X and Y
//   powers        [channel][antenna][4]                   double     |E_x|^2, |E_y|^2, Re and Im E_x conj(E_y), summed
//   lags          [channel][4][dy][dx]                    float      dx, dy >= 0: even along both axes
//
// docs/decisions/0006 records 35 us for powers_kernel and 11 us for lags_kernel (256 antennas, 132 channels x 1,000
// spectra, one H200). Each sample is read once.
// clang-format on
#include <cstdint>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/image/cuda/all_sky_kernels.cuh"
#include "ryle/engine/image/cuda/all_sky_voltages.cuh"
#include "ryle/engine/image/geometry.hpp"

namespace ryle::image::detail {
namespace {

constexpr int kThreads = 256;

/// Calibrated fields: a thread makes X and Y of one antenna and spectrum.
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

/// Sixteen spectra of an input: bytes of real and of imaginary parts; of four bits 16 times those.
struct Sixteen {
  uint4 re, im;
};

__device__ inline uint4 load_bytes(const std::byte* from) {
  if ((reinterpret_cast<std::uintptr_t>(from) & 15) == 0) {
    return *reinterpret_cast<const uint4*>(from);
  }
  const auto* words = reinterpret_cast<const unsigned*>(from);
  return {words[0], words[1], words[2], words[3]};
}

// As they lie in memory; `unit` counts sixteen spectra.
__device__ inline Sixteen fetch_sixteen(const FieldBlocks& b, int channel, int unit, int input) {
  if (input < 0) return {};
  if (b.nibbles) {
    const uint4 v = load_bytes(cell_of(b, channel, unit / 8, input) + unit % 8 * 16);
    return {v, v};
  }
  const auto* cell = cell_of(b, channel, unit / 4, input) + unit % 4 / 2 * 64 + unit % 2 * 16;
  return {load_bytes(cell), load_bytes(cell + 32)};
}

__device__ inline void add_four(int& sum, unsigned a, unsigned b) {
  sum = __dp4a(static_cast<int>(a), static_cast<int>(b), sum);
}

// |x|^2, |y|^2, Re x conj(y), and the two products of its imaginary part: four spectra.
__device__ inline void add_word(bool nibbles, unsigned x_re, unsigned x_im, unsigned y_re,
                                unsigned y_im, int (&part)[5]) {
  if (nibbles) {  // real parts are the high halves
    constexpr unsigned kHigh = 0xf0f0f0f0u;
    x_re &= kHigh, x_im = x_im << 4 & kHigh;
    y_re &= kHigh, y_im = y_im << 4 & kHigh;
  }
  add_four(part[0], x_re, x_re), add_four(part[0], x_im, x_im);
  add_four(part[1], y_re, y_re), add_four(part[1], y_im, y_im);
  add_four(part[2], x_re, y_re), add_four(part[2], x_im, y_im);
  add_four(part[3], x_im, y_re), add_four(part[4], x_re, y_im);
}

// A product of bytes is at most 2^14: sixteen spectra are at most 2^19.
__device__ inline void add_sixteen(bool nibbles, const Sixteen& x, const Sixteen& y,
                                   long long (&sum)[4]) {
  int part[5] = {};
  add_word(nibbles, x.re.x, x.im.x, y.re.x, y.im.x, part);
  add_word(nibbles, x.re.y, x.im.y, y.re.y, y.im.y, part);
  add_word(nibbles, x.re.z, x.im.z, y.re.z, y.im.z, part);
  add_word(nibbles, x.re.w, x.im.w, y.re.w, y.im.w, part);
#pragma unroll
  for (int p = 0; p < 3; ++p) sum[p] += part[p];
  sum[3] += part[3] - part[4];
}

// Eight lanes own an antenna of a channel and take sixteen spectra each, a cell of four-bit samples
// together; the next sixteen are under way meanwhile. Exact integers.
constexpr int kPowerLanes = 8;

/// Adds the powers of every antenna to `powers`: sums of codes are exact integers (dp4a), which are
/// calibrated at the end.
__global__ void __launch_bounds__(kThreads)
    powers_kernel(FieldBlocks blocks, VisArray array, int n_spectra, double* powers) {
  const int channel = blockIdx.y;
  const int a = blockIdx.x * (kThreads / kPowerLanes) + threadIdx.x / kPowerLanes;
  const int lane = threadIdx.x % kPowerLanes;
  const bool there = a < array.n_antennas;
  const int input_x = there ? array.input[2 * a] : -1;
  const int input_y = there ? array.input[2 * a + 1] : -1;
  const int n_units = (n_spectra + 15) / 16;  // beyond n_spectra the blocks hold zeros
  long long sum[4] = {};
  for (int unit = lane; unit < n_units; unit += 2 * kPowerLanes) {
    const Sixteen x = fetch_sixteen(blocks, channel, unit, input_x);
    const Sixteen y = fetch_sixteen(blocks, channel, unit, input_y);
    const int second = unit + kPowerLanes;
    Sixteen next_x{}, next_y{};
    if (second < n_units) {
      next_x = fetch_sixteen(blocks, channel, second, input_x);
      next_y = fetch_sixteen(blocks, channel, second, input_y);
    }
    add_sixteen(blocks.nibbles, x, y, sum);
    add_sixteen(blocks.nibbles, next_x, next_y, sum);
  }
#pragma unroll
  for (int p = 0; p < 4; ++p) {
    for (int step = kPowerLanes / 2; step > 0; step /= 2)
      sum[p] += __shfl_down_sync(0xffffffffu, sum[p], step, kPowerLanes);
  }
  if (lane != 0 || !there) return;
  const double unit = blocks.nibbles ? 1.0 / 256 : 1.0;
  const std::int64_t at = static_cast<std::int64_t>(channel) * array.n_antennas + a;
  const float2 f = array.factor[2 * at], g = array.factor[2 * at + 1];
  const double fx = f.x, fy = f.y, gx = g.x, gy = g.y;
  const double cross_re = fx * gx + fy * gy, cross_im = fy * gx - fx * gy;  // f conj(g)
  const double re = unit * static_cast<double>(sum[2]), im = unit * static_cast<double>(sum[3]);
  powers[4 * at] += (fx * fx + fy * fy) * (unit * static_cast<double>(sum[0]));
  powers[4 * at + 1] += (gx * gx + gy * gy) * (unit * static_cast<double>(sum[1]));
  powers[4 * at + 2] += cross_re * re - cross_im * im;
  powers[4 * at + 3] += cross_re * im + cross_im * re;
}

/// What one antenna adds to a lag is a product of a function of the rows and one of the columns: a
/// block makes those of kLagAntennas antennas once, in shared memory, and then all lags of its
/// channel and plane of them.
constexpr int kLagAntennas = 256;

struct LagTerms {
  double column[kMaxSupport][kLagAntennas];  // power times sum_i w_x(i) w_x(i + d)
  double row[kMaxSupport][kLagAntennas];
};

__device__ void make_terms(LagTerms& terms, const double* powers, const float* weights,
                           std::int64_t first, int n, int support) {
  for (int k = threadIdx.x; k < 2 * kLagAntennas; k += kThreads) {
    const int a = k % kLagAntennas, axis = k / kLagAntennas;
    if (a >= n) continue;
    const float* from = weights + ((first + a) * 2 + axis) * support;
    const double power = axis == 0 ? powers[4 * (first + a)] : 1;
    float w[kMaxSupport];
#pragma unroll
    for (int i = 0; i < kMaxSupport; ++i) w[i] = i < support ? from[i] : 0.0f;
    double(*term)[kLagAntennas] = axis == 0 ? terms.column : terms.row;
#pragma unroll
    for (int d = 0; d < kMaxSupport; ++d) {
      if (d >= support) break;
      double sum = 0;
#pragma unroll
      for (int i = 0; i + d < kMaxSupport; ++i) sum += static_cast<double>(w[i]) * w[i + d];
      term[d][a] = power * sum;
    }
  }
}

/// lags[d] = sum_a P_a sum_r w_a(r + d) w_a(r). A thread block makes one channel and plane; a warp
/// sums a lag over the antennas in a fixed order, in double.
__global__ void __launch_bounds__(kThreads) lags_kernel(const double* powers, const float* weights,
                                                        int n_antennas, int support, float* lags) {
  __shared__ LagTerms terms;
  __shared__ double totals[kMaxSupport * kMaxSupport];
  const int cells = support * support, plane = blockIdx.y;
  const int lane = threadIdx.x % 32;
  for (int begin = 0; begin < n_antennas; begin += kLagAntennas) {
    const int n = min(kLagAntennas, n_antennas - begin);
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * n_antennas + begin;
    __syncthreads();
    make_terms(terms, powers + plane, weights, first, n, support);
    __syncthreads();
    for (int k = threadIdx.x / 32; k < cells; k += kThreads / 32) {
      const double *column = terms.column[k % support], *row = terms.row[k / support];
      double total = 0;
      for (int a = lane; a < n; a += 32) total += column[a] * row[a];
      for (int step = 16; step > 0; step /= 2) total += __shfl_down_sync(0xffffffffu, total, step);
      if (lane == 0) totals[k] = begin == 0 ? total : totals[k] + total;
    }
  }
  __syncthreads();
  float* out = lags + (static_cast<std::int64_t>(blockIdx.x) * 4 + plane) * cells;
  for (int k = threadIdx.x; k < cells; k += kThreads) out[k] = static_cast<float>(totals[k]);
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
  constexpr int kAntennas = kThreads / kPowerLanes;  // of a block
  const dim3 grid(static_cast<unsigned>((array.n_antennas + kAntennas - 1) / kAntennas),
                  static_cast<unsigned>(n_channels));
  powers_kernel<<<grid, kThreads, 0, stream>>>(blocks, array, n_spectra, powers);
  RYLE_CUDA_LAUNCHED("powers_kernel");
}

void launch_auto_lags(const double* powers, const float* weights, int n_antennas, int support,
                      int n_channels, float* lags, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(n_channels), 4);
  lags_kernel<<<grid, kThreads, 0, stream>>>(powers, weights, n_antennas, support, lags);
  RYLE_CUDA_LAUNCHED("lags_kernel");
}

}  // namespace ryle::image::detail
