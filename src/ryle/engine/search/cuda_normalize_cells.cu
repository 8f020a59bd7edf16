// SPDX-License-Identifier: BSD-3-Clause
// Passes over all samples, equal to Normalizer (normalize.cpp) bit for bit: compiled without fused
// multiply-adds, sums in its order.
#include <cfloat>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/search/cuda_normalize.cuh"

namespace ryle::search::detail {
namespace {

constexpr int kMeasureWarps = 4;

__device__ __forceinline__ bool is_number(float x) { return fabsf(x) <= FLT_MAX; }

/// A spectrum whose channels all have one value never came.
__global__ void absent_kernel(const NormalizeWork w) {
  const std::int64_t t = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int beam = blockIdx.y;
  if (t >= w.in.n) return;
  const float* x = w.in.values + beam * w.in.beam_stride + t;
  const float first = x[0];
  bool absent = w.n_channels > 1;
  for (int c = 1; absent && c < w.n_channels; ++c) absent = x[c * w.in.channel_stride] == first;
  w.absent[beam * w.absent_stride + t] = absent ? 1 : 0;
}

/// A lane a channel, its samples in order of time through shared memory: the sums of the host.
__global__ void __launch_bounds__(32 * kMeasureWarps)
    measure_kernel(const NormalizeWork w, std::int64_t n_jobs) {
  __shared__ float tiles[kMeasureWarps][32][33];
  auto& tile = tiles[threadIdx.x / 32];
  const int lane = threadIdx.x % 32;
  const std::int64_t job = static_cast<std::int64_t>(blockIdx.x) * kMeasureWarps + threadIdx.x / 32;
  if (job >= n_jobs) return;
  const int n_groups = (w.n_channels + 31) / 32;
  const auto cell = static_cast<int>(job % w.n_cells);
  const auto group = static_cast<int>(job / w.n_cells % n_groups);
  const std::int64_t beam = job / w.n_cells / n_groups;
  const int channel = 32 * group + lane;
  const std::int64_t first = static_cast<std::int64_t>(cell) * w.cell_samples;
  const std::int64_t end = min(w.in.n, first + w.cell_samples);
  const bool out = channel >= w.n_channels || w.user[channel] != 0;
  const float* rows = w.in.values + beam * w.in.beam_stride + 32 * group * w.in.channel_stride;
  int count = 0;
  double sum = 0, squares = 0, shift = 0;
  for (std::int64_t t = first; t < end; t += 32) {
    const auto m = static_cast<int>(min(static_cast<std::int64_t>(32), end - t));
#pragma unroll 8
    for (int r = 0; r < 32; ++r)
      if (32 * group + r < w.n_channels && lane < m)
        tile[r][lane] = rows[r * w.in.channel_stride + t + lane];
    const bool gone = lane >= m || w.absent[beam * w.absent_stride + t + lane] != 0;
    const unsigned absent = __ballot_sync(0xffffffffu, gone);
    __syncwarp();
    if (!out) {
      for (int i = 0; i < m; ++i) {
        const float x = tile[lane][i];
        if ((absent >> i & 1) != 0 || !is_number(x)) continue;
        if (count == 0) shift = static_cast<double>(x);
        const double v = static_cast<double>(x) - shift;
        ++count;
        sum += v;
        squares += v * v;
      }
    }
    __syncwarp();
  }
  if (channel >= w.n_channels) return;
  CellMoments moments{0, 0};
  if (count >= 32) {
    const double n = count, mean = sum / n;
    const double variance = squares / n - mean * mean;
    moments = {shift + mean, sqrt(variance > 0 ? variance : 0.0)};
  }
  w.now[(beam * w.n_channels + channel) * w.n_cells + cell] = moments;
}

/// Upper middle of n values, 0 of none.
__device__ double middle_of(const double* values, int n) {
  for (int i = 0; i < n; ++i) {
    int below = 0, not_above = 0;
    for (int j = 0; j < n; ++j) {
      below += values[j] < values[i] ? 1 : 0;
      not_above += values[j] <= values[i] ? 1 : 0;
    }
#if RYLE_MUTANT == 1140
    const int middle = (n - 1) / 2;
#else
    const int middle = n / 2;
#endif
    if (below <= middle && middle < not_above) return values[i];
  }
  return 0;
}

__global__ void medians_kernel(const NormalizeWork w, std::int64_t n_jobs) {
  const std::int64_t job = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (job >= n_jobs) return;
  const auto cell = static_cast<int>(job % w.n_cells);
  const std::int64_t row = job / w.n_cells;  // beam and channel
  const CellMoments* now = w.now + row * w.n_cells;
  const CellMoments* past = w.past + (row + 1) * w.past_room;
  double means[kMostMedianCells], rmss[kMostMedianCells];
  int n = 0;
  for (int k = cell - w.median_cells / 2; k < cell + w.median_cells / 2; ++k) {
    if (k < -w.n_past_cells || k >= w.n_cells) continue;
    const CellMoments m = k < 0 ? past[k] : now[k];
    if (!(m.rms > 0)) continue;
    means[n] = m.mean;
    rmss[n++] = m.rms;
  }
  const CellMoments usual{middle_of(means, n), middle_of(rmss, n)};
  w.usual[job] = usual;
  if (cell == min(w.n_cells / 2, w.n_cells - 1)) w.typical[row] = usual;
}

__global__ void scales_kernel(const NormalizeWork w, std::int64_t n_jobs) {
  const std::int64_t job = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (job >= n_jobs) return;
  const CellMoments usual = w.usual[job];
  const bool measured = usual.rms > 0;
  std::int32_t cause = w.bad[job];
  if (w.flags[job / w.n_cells] != 0 || !measured) cause = kChannel;
  w.scales[job] = {static_cast<float>(usual.mean),
                   measured ? static_cast<float>(1 / usual.rms) : 0.0f,
                   measured ? static_cast<float>(kCodeSigma / usual.rms) : 0.0f, cause};
}

/// Four samples a thread, 16 threads a cell of the mask; a block one cell of one channel.
__global__ void __launch_bounds__(256) codes_kernel(const NormalizeWork w) {
  __shared__ unsigned counts[kNormalizeCounters];
  const auto cell = static_cast<int>(blockIdx.x % w.n_cells);
  const std::int64_t row = blockIdx.x / w.n_cells;
  const std::int64_t beam = row / w.n_channels, channel = row % w.n_channels;
  if (threadIdx.x < kNormalizeCounters) counts[threadIdx.x] = 0;
  __syncthreads();
  const CellScale s = w.scales[blockIdx.x];
  const bool user = w.user[channel] != 0;
  const float* x = w.in.values + beam * w.in.beam_stride + channel * w.in.channel_stride;
  const std::uint8_t* absent = w.absent + beam * w.absent_stride;
  const std::uint8_t* masked = w.masked + beam * w.absent_stride;
  std::uint8_t* codes = w.out.codes + beam * w.out.beam_stride + channel * w.out.channel_stride;
  std::uint8_t* cells =
      w.out.cells + beam * w.out.cell_beam_stride + channel * w.out.cell_channel_stride;
  const std::int64_t first = static_cast<std::int64_t>(cell) * w.cell_samples;
  const std::int64_t end = min(w.in.n, first + w.cell_samples);
  for (std::int64_t base = first; base < end; base += 4 * blockDim.x) {
    const std::int64_t begin = base + 4 * threadIdx.x;
    int good = 0, low = 0, high = 0;
    for (int k = 0; k < 4; ++k) {
      const std::int64_t t = begin + k;
      if (t >= end) break;
      int cause = kNone;
      const float value = x[t];
      if (user)
        cause = kUser;
      else if (absent[t] != 0 || !is_number(value))
        cause = kAbsent;
      else if (s.cause != kNone)
        cause = s.cause;
      else if (masked[t] != 0)
        cause = kSpectrum;
      float q = static_cast<float>(kCodeMean) + s.code_scale * (value - s.mean);
      if (cause != kNone) {
        q = static_cast<float>(kCodeMean);
        atomicAdd(&counts[cause], 1u);
      } else {
        ++good;
      }
      low += q < -0.5f ? 1 : 0;
      high += q >= static_cast<float>(kMaxCode) + 0.5f ? 1 : 0;
      q = fminf(fmaxf(q, 0.0f), static_cast<float>(kMaxCode));
      codes[t] = static_cast<std::uint8_t>(__float2int_rn(q));
    }
    if (low > 0) atomicAdd(&counts[kClippedLow], static_cast<unsigned>(low));
    if (high > 0) atomicAdd(&counts[kClippedHigh], static_cast<unsigned>(high));
    for (int step = 8; step > 0; step /= 2) good += __shfl_xor_sync(0xffffffffu, good, step);
    if (threadIdx.x % 16 == 0 && begin < end) {
      cells[begin / kCell] = static_cast<std::uint8_t>((good * kFullCell + kCell / 2) / kCell);
      if (good > 0) atomicAdd(&counts[kNone], static_cast<unsigned>(good));
    }
  }
  __syncthreads();
  if (threadIdx.x < kNormalizeCounters && counts[threadIdx.x] > 0)
    atomicAdd(&w.counters[beam * kNormalizeCounters + threadIdx.x],
              static_cast<unsigned long long>(counts[threadIdx.x]));
}

__global__ void keep_cells_kernel(const NormalizeWork w, std::int64_t n_rows) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= n_rows) return;
  const CellMoments* now = w.now + row * w.n_cells;
  CellMoments* past = w.past + row * w.past_room;
  for (int i = 0; i < w.past_room; ++i) {
    const int from = i + w.n_cells;
    past[i] = from >= w.past_room ? now[from - w.past_room] : past[from];
  }
}

__global__ void __launch_bounds__(256) sum_groups_kernel(const NormalizeWork w, const BurstWork b) {
  const std::int64_t t = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (t >= w.in.n) return;
  const int group = blockIdx.y;
  const std::int64_t beam = blockIdx.z;
  const auto first = static_cast<int>(
      (static_cast<std::int64_t>(group) * w.n_channels + b.n_groups - 1) / b.n_groups);
  const auto end = static_cast<int>(
      (static_cast<std::int64_t>(group + 1) * w.n_channels + b.n_groups - 1) / b.n_groups);
  const bool absent = w.absent[beam * w.absent_stride + t] != 0;
  const auto cell = t / w.cell_samples;
  const float* x = w.in.values + beam * w.in.beam_stride + t;
  const CellScale* scales = w.scales + beam * w.n_channels * w.n_cells + cell;
  float sum = 0, count = 0;
#pragma unroll 4
  for (int c = first; c < end; ++c) {
    const float value = x[c * w.in.channel_stride];
    const CellScale s = scales[static_cast<std::int64_t>(c) * w.n_cells];
    const bool good = s.cause == kNone && !absent && is_number(value);
    sum += good ? (value - s.mean) * s.inverse : 0.0f;
    count += good ? 1.0f : 0.0f;
  }
  const std::int64_t at = (beam * b.n_groups + group) * b.ring + (b.first_column + t) % b.ring;
  b.sums[at] = sum;
  b.counts[at] = count;
}

unsigned blocks_for(std::int64_t n, int threads) {
  return static_cast<unsigned>((n + threads - 1) / threads);
}
std::int64_t n_rows_of(const NormalizeWork& w) {
  return static_cast<std::int64_t>(w.n_beams) * w.n_channels;
}

}  // namespace

void launch_absent(const NormalizeWork& w, cudaStream_t stream) {
  absent_kernel<<<dim3(blocks_for(w.in.n, 256), static_cast<unsigned>(w.n_beams)), 256, 0,
                  stream>>>(w);
  RYLE_CUDA_LAUNCHED("absent spectra");
}

void launch_measure(const NormalizeWork& w, cudaStream_t stream) {
  const std::int64_t jobs =
      static_cast<std::int64_t>(w.n_beams) * ((w.n_channels + 31) / 32) * w.n_cells;
  measure_kernel<<<blocks_for(jobs, kMeasureWarps), 32 * kMeasureWarps, 0, stream>>>(w, jobs);
  RYLE_CUDA_LAUNCHED("moments of cells");
}

void launch_medians(const NormalizeWork& w, cudaStream_t stream) {
  const std::int64_t jobs = n_rows_of(w) * w.n_cells;
  medians_kernel<<<blocks_for(jobs, 128), 128, 0, stream>>>(w, jobs);
  RYLE_CUDA_LAUNCHED("running medians");
}

void launch_scales(const NormalizeWork& w, cudaStream_t stream) {
  const std::int64_t jobs = n_rows_of(w) * w.n_cells;
  scales_kernel<<<blocks_for(jobs, 256), 256, 0, stream>>>(w, jobs);
  RYLE_CUDA_LAUNCHED("scales of cells");
}

void launch_codes(const NormalizeWork& w, cudaStream_t stream) {
  codes_kernel<<<static_cast<unsigned>(n_rows_of(w) * w.n_cells), 256, 0, stream>>>(w);
  RYLE_CUDA_LAUNCHED("codes");
}

void launch_keep_cells(const NormalizeWork& w, cudaStream_t stream) {
  if (w.past_room == 0) return;
  keep_cells_kernel<<<blocks_for(n_rows_of(w), 256), 256, 0, stream>>>(w, n_rows_of(w));
  RYLE_CUDA_LAUNCHED("past cells");
}

void launch_sum_groups(const NormalizeWork& w, const BurstWork& b, cudaStream_t stream) {
  sum_groups_kernel<<<dim3(blocks_for(w.in.n, 256), static_cast<unsigned>(b.n_groups),
                           static_cast<unsigned>(w.n_beams)),
                      256, 0, stream>>>(w, b);
  RYLE_CUDA_LAUNCHED("sums of groups");
}

}  // namespace ryle::search::detail
