// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The kernels of DriftFilter for many beams: levels that drift and step are taken out of the power,
// out = x + correction, or x correction. Every kernel is one step of drift_steps.hpp, where the
// equations are, with a thread for a channel, a cell or a sample; DriftWork below is the layout
// table of all arrays. Only take_samples_kernel (reads all power) and give_samples_kernel (writes
// all of it) touch every sample; the others work on cells. Compiled without fused multiply-adds.
#include "ryle/engine/search/cuda/normalize.hpp"
#include "ryle/engine/search/cuda/normalize_middle.cuh"
#include "ryle/engine/search/drift_steps.hpp"

namespace ryle::search::detail {

inline constexpr int kTakeWarps = 8;
inline constexpr int kTakeSamples = 256;  ///< of a warp: a whole longest cell
inline constexpr int kDriftThreads = 128;

/// One block of all beams. Rows are channels of beams; arrays are device memory.
struct DriftWork {
  DevicePower in;  ///< the samples that came
  DriftShape shape;
  int n_beams, n_channels;
  bool multiply;
  std::int64_t taken, given;                               ///< samples before this block
  int first_out, end_out;                                  ///< cells of the plane that go out
  const std::uint8_t* masked;                              ///< [channel]
  const std::uint8_t* absent;                              ///< [beam][block]
  float* ring;                                             ///< [row][lag + block]
  const float* before;                                     ///< [row][plane], of the block before
  float* planes;                                           ///< [row][plane]
  CellLevel* levels;                                       ///< [row]
  float* targets;                                          ///< [row]
  float* responses;                                        ///< [row]
  float *common, *calm, *steps, *middles, *left, *shared;  ///< [beam][plane]
  float* scatters;                                         ///< [beam]
  CellRange* there;                                        ///< [beam]
  CellRange* segments;                                     ///< [beam][plane]
  float *own, *own_middles, *own_left;                     ///< [row][plane / kDriftJoined]
  float* corrections;                                      ///< [row][cells that go out at most]
  float* out;                                              ///< [row][block]

  __host__ __device__ int n_own() const { return shape.plane / kDriftJoined; }
  __host__ __device__ int n_new() const { return static_cast<int>(shape.block / shape.cell); }
  __host__ __device__ CellRange go() const { return {first_out, end_out}; }
  __host__ __device__ CellRange go_own() const {
    return {first_out / kDriftJoined, end_out / kDriftJoined};
  }
};

/// Cells of the block before that stay in the plane move forward. A thread a cell.
__global__ void __launch_bounds__(kDriftThreads)
    move_cells_kernel(const DriftWork w, std::int64_t n_rows) {
  const std::int64_t job = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int n_stay = w.shape.plane - w.n_new();
  if (job >= n_rows * n_stay) return;
  const std::int64_t row = job / n_stay, k = job % n_stay;
  w.planes[row * w.shape.plane + k] = w.before[row * w.shape.plane + k + w.n_new()];
}

/// Samples into the ring (NaN where absent), and means of their cells into the plane. A warp takes
/// 256 samples of a row: lanes of 32 samples, then halves by shuffles.
__global__ void __launch_bounds__(32 * kTakeWarps)
    take_samples_kernel(const DriftWork w, std::int64_t n_jobs) {
  constexpr int kOfLane = kTakeSamples / 32;
  const std::int64_t job = static_cast<std::int64_t>(blockIdx.x) * kTakeWarps + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (job >= n_jobs) return;
  const std::int64_t n_pieces = w.shape.block / kTakeSamples;
  const std::int64_t row = job / n_pieces, first = job % n_pieces * kTakeSamples;
  const std::int64_t beam = row / w.n_channels;
  const float* from =
      w.in.values + beam * w.in.beam_stride + row % w.n_channels * w.in.channel_stride;
  float* to = w.ring + row * w.shape.ring() + (w.taken + first) % w.shape.ring();
  float x[kOfLane];
#pragma unroll
  for (int i = 0; i < kOfLane; ++i) {
    const std::int64_t t = first + 32 * i + lane;
    float v = t < w.in.n ? from[t] : NAN;
    if (!is_number(v) || w.absent[beam * w.shape.block + t] != 0) v = NAN;
    to[32 * i + lane] = x[i] = v;
  }
  const int cell = w.shape.cell, lanes = cell < 32 ? cell : 32, of_cell = cell / lanes;
  float* cells = w.planes + row * w.shape.plane + w.shape.plane - w.n_new();
  float sum = 0, count = 0;
#pragma unroll
  for (int i = 0; i < kOfLane; ++i) {
    sum += is_there(x[i]) ? x[i] : 0.0f;
    count += is_there(x[i]) ? 1.0f : 0.0f;
    if ((i + 1) % of_cell != 0) continue;
    for (int step = lanes / 2; step > 0; step /= 2) {
      sum += __shfl_xor_sync(0xffffffffu, sum, step);
      count += __shfl_xor_sync(0xffffffffu, count, step);
    }
    if (lane % lanes == 0)
      cells[(first + 32 * (i + 1 - of_cell) + lane) / cell] =
          count > 0 && 2 * count >= static_cast<float>(cell) ? sum / count : NAN;
    sum = count = 0;
  }
}

/// Center and scatter of a channel's cells. A thread a channel of a beam.
__global__ void __launch_bounds__(kDriftThreads)
    levels_kernel(const DriftWork w, std::int64_t n_rows) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= n_rows) return;
  w.levels[row] = level_of(w.planes + row * w.shape.plane, w.shape.plane);
}

/// What all channels do at once: the mean of their deviations, channels in the order of the host. A
/// thread a cell of time of a beam.
__global__ void __launch_bounds__(kDriftThreads) common_level_kernel(const DriftWork w) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const std::int64_t beam = blockIdx.y;
  if (i >= w.shape.plane) return;
  float sum = 0, count = 0;
  for (int c = 0; c < w.n_channels; ++c) {
    const std::int64_t row = beam * w.n_channels + c;
    const CellLevel level = w.levels[row];
    if (!(level.scatter > 0) || w.masked[c] != 0) continue;
    const float u =
        within((w.planes[row * w.shape.plane + i] - level.center) * level.inverse, kMaxDeviation);
    sum += is_there(u) ? u : 0.0f;
    count += is_there(u) ? 1.0f : 0.0f;
  }
  w.common[beam * w.shape.plane + i] = count > 0 ? sum / count : NAN;
}

/// Scatter and range of the common level. A thread a beam.
__global__ void __launch_bounds__(kDriftThreads) common_scatter_kernel(const DriftWork w) {
  const int beam = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (beam >= w.n_beams) return;
  const float* common = w.common + static_cast<std::int64_t>(beam) * w.shape.plane;
  w.scatters[beam] = level_of(common, w.shape.plane).scatter;
  w.there[beam] = there_of(common, w.shape.plane);
}

/// The common level without bursts, and the height of a step at each cell. A thread a cell of a
/// beam.
__global__ void __launch_bounds__(kDriftThreads) common_steps_kernel(const DriftWork w) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), n = w.shape.plane;
  const std::int64_t beam = blockIdx.y;
  if (i >= n) return;
  const float* common = w.common + beam * n;
  w.calm[beam * n + i] = without_burst(common, i, w.shape.half, n, 4 * w.scatters[beam]);
  w.steps[beam * n + i] = step_at(common, i, w.shape.half, n).height;
}

/// The segments between steps, in order of time. A thread a beam.
__global__ void __launch_bounds__(kDriftThreads) common_segments_kernel(const DriftWork w) {
  const int beam = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (beam >= w.n_beams) return;
  const std::int64_t at = static_cast<std::int64_t>(beam) * w.shape.plane;
  find_segments(w.common + at, w.steps + at, w.shape.half, w.shape.plane, w.scatters[beam],
                w.segments + at);
}

/// First average of the common level about each cell, within its segment. A thread a cell of a
/// beam.
__global__ void __launch_bounds__(kDriftThreads) common_middles_kernel(const DriftWork w) {
  const CellRange all = averaged(w.go(), w.shape.half);
  const int i = all.first + static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.y) * w.shape.plane;
  if (i >= all.end) return;
  const CellRange r = even_window(i, w.shape.half, w.segments[at + i]);
  w.middles[at + i] = mean_within(w.calm + at, r.first, r.end);
  w.left[at + i] = w.calm[at + i] - w.middles[at + i];
}

/// Second average: the smoothed common level of the cells that go out. A thread a cell of a beam.
__global__ void __launch_bounds__(kDriftThreads) common_shared_kernel(const DriftWork w) {
  const int i = w.first_out + static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.y) * w.shape.plane;
  if (i >= w.end_out) return;
  const CellRange all = averaged(w.go(), w.shape.half);
  const CellRange r = about(i, w.shape.half, common_part(all, w.segments[at + i]));
  w.shared[at + i] = w.middles[at + i] + mean_within(w.left + at, r.first, r.end);
}

/// Response of a channel to the common level, and the level that stays. A thread a channel of a
/// beam.
__global__ void __launch_bounds__(kDriftThreads)
    channel_responses_kernel(const DriftWork w, std::int64_t n_rows) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= n_rows) return;
  const CellLevel level = w.levels[row];
  if (!is_there(w.targets[row]) && level.scatter > 0) w.targets[row] = level.center;
  w.responses[row] = level.scatter > 0
                         ? response_of(w.planes + row * w.shape.plane, level,
                                       w.common + row / w.n_channels * w.shape.plane, w.shape.plane)
                         : 0.0f;
}

/// What is a channel's own, in cells joined by kDriftJoined. A thread a joined cell.
__global__ void __launch_bounds__(kDriftThreads)
    own_levels_kernel(const DriftWork w, std::int64_t n_rows) {
  const std::int64_t job = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (job >= n_rows * w.n_own()) return;
  const std::int64_t row = job / w.n_own();
  w.own[job] = own_level(w.planes + row * w.shape.plane, w.levels[row],
                         w.common + row / w.n_channels * w.shape.plane, w.responses[row],
                         static_cast<int>(job % w.n_own()));
}

/// First average of a channel's own level, and what it leaves. A thread a joined cell.
__global__ void __launch_bounds__(kDriftThreads)
    own_middles_kernel(const DriftWork w, std::int64_t n_rows) {
  const std::int64_t job = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const CellRange all = averaged(w.go_own(), w.shape.own_half);
  const int n = all.end - all.first;
  if (job >= n_rows * n) return;
  const std::int64_t row = job / n, at = row * w.n_own();
  const int k = all.first + static_cast<int>(job % n);
  float left = 0;
  w.own_middles[at + k] = first_average(
      w.own + at, k, w.shape.own_half, joined_range(w.there[row / w.n_channels]), kOwnLimit, &left);
  w.own_left[at + k] = left;
}

/// Second average, and the correction of every cell that goes out. A thread a joined cell.
__global__ void __launch_bounds__(kDriftThreads)
    corrections_kernel(const DriftWork w, std::int64_t n_rows) {
  const std::int64_t job = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const CellRange go = w.go_own();
  const int n = go.end - go.first;
  if (job >= n_rows * n) return;
  const std::int64_t row = job / n, at = row * w.n_own();
  const int k = static_cast<int>(job % n);
  const float own =
      second_average(w.own_middles + at, w.own_left + at, go.first + k, w.shape.own_half, go);
  const float* shared = w.shared + row / w.n_channels * w.shape.plane + w.first_out;
  for (int i = kDriftJoined * k; i < kDriftJoined * (k + 1); ++i)
    w.corrections[row * w.n_new() + i] =
        correction_of(w.levels[row], w.responses[row], shared[i], own, w.targets[row], w.multiply);
}

/// Corrected samples from the ring to the output. A thread a time; it walks through the rows.
__global__ void __launch_bounds__(256) give_samples_kernel(const DriftWork w, std::int64_t n_rows) {
  const std::int64_t t = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t n = static_cast<std::int64_t>(w.end_out - w.first_out) * w.shape.cell;
  if (t >= n) return;
  const std::int64_t at = (w.given + t) % w.shape.ring();
  for (std::int64_t row = blockIdx.y; row < n_rows; row += gridDim.y) {
    const float x = w.ring[row * w.shape.ring() + at];
    const float value = w.corrections[row * w.n_new() + t / w.shape.cell];
    w.out[row * w.shape.block + t] = w.multiply ? x * value : x + value;
  }
}

}  // namespace ryle::search::detail
