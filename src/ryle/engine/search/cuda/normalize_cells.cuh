// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// clang-format off
// Moments of cells and what follows from them, equal to Normalizer (normalize.cpp) bit for bit: compiled without
// fused multiply-adds, sums in its order. A cell is cell_samples samples of one channel.
//
//   array        axes                              type          content
//   w.in.values  [beam][channel][time]             float         power
//   w.absent     [beam][time]                      uint8         1: the spectrum never came
//   w.now        [beam][channel][cell]             CellMoments   mean and rms of cells; rms 0: nothing there
//   w.past       [beam][channel][past_room]        CellMoments   cells of gulps before, the last ones at the end
//   w.usual      [beam][channel][cell]             CellMoments   running medians of both
//   w.scales     [beam][channel][cell]             CellScale     what samples of the cell become
//
// What binds: measure_kernel reads all power once, at 4.2 TB/s on one H200 (docs/decisions/0013): memory. The
// others work on cells, a thousandth of the samples.
// clang-format on
#include "ryle/engine/search/cuda/normalize_middle.cuh"
#include "ryle/engine/search/cuda/normalize_work.hpp"

namespace ryle::search::detail {

inline constexpr int kMeasureWarps = 4;

/// Marks spectra that never came: those whose channels all have one value. A thread a spectrum.
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

/// Sums of a lane over the samples of a channel, those of the host.
struct LaneMoments {
  int count = 0;
  double sum = 0, squares = 0, shift = 0;

  __device__ __forceinline__ void add(float x) {
    const double v = static_cast<double>(x) - shift;
    sum += v;
    squares += v * v;
  }
  __device__ CellMoments moments() const {
    if (count < 32) return {0, 0};
    const double n = count, mean = sum / n;
    const double variance = squares / n - mean * mean;
    return {shift + mean, sqrt(variance > 0 ? variance : 0.0)};
  }
};

/// Mean and rms of each cell. A warp takes a cell of 32 channels: it reads 32 x 32 samples along
/// time, which a tile in shared memory transposes, so that a lane then adds the samples of one
/// channel in order of time.
__global__ void __launch_bounds__(32 * kMeasureWarps)
    measure_kernel(const NormalizeWork w, std::int64_t n_jobs) {
  __shared__ float tiles[kMeasureWarps][32][33];
  auto& tile = tiles[threadIdx.x / 32];
  const int lane = static_cast<int>(threadIdx.x % 32);
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
  const int n_rows = min(32, w.n_channels - 32 * group);
  const float* rows = w.in.values + beam * w.in.beam_stride + 32 * group * w.in.channel_stride;
  const std::uint8_t* timed =
      w.times == nullptr || out ? nullptr : w.times + channel * w.times_stride;
  LaneMoments mine;
  for (std::int64_t t = first; t < end; t += 32) {
    const auto m = static_cast<int>(min(std::int64_t{32}, end - t));
    bool numbers = w.times == nullptr;
    if (n_rows == 32 && m == 32) {
      float x[32];
#pragma unroll
      for (int r = 0; r < 32; ++r) x[r] = rows[r * w.in.channel_stride + t + lane];
#pragma unroll
      for (int r = 0; r < 32; ++r) {
        tile[r][lane] = x[r];
        numbers &= is_number(x[r]);
      }
    } else {
      numbers = false;
      for (int r = 0; r < n_rows; ++r)
        if (lane < m) tile[r][lane] = rows[r * w.in.channel_stride + t + lane];
    }
    const bool gone = lane >= m || w.absent[beam * w.absent_stride + t + lane] != 0;
    const unsigned absent = __ballot_sync(0xffffffffu, gone);
    const bool all = __all_sync(0xffffffffu, numbers && !gone) != 0;  // orders the tile, too
    __syncwarp();
    if (all) {  // nearly always
      if (mine.count == 0) mine.shift = static_cast<double>(tile[lane][0]);
      mine.count += 32;
#pragma unroll 8
      for (int i = 0; i < 32; ++i) mine.add(tile[lane][i]);
    } else if (!out) {
      for (int i = 0; i < m; ++i) {
        const float x = tile[lane][i];
        if ((absent >> i & 1) != 0 || !is_number(x)) continue;
        if (timed != nullptr && timed[t + i] != 0) continue;
        if (mine.count == 0) mine.shift = static_cast<double>(x);
        ++mine.count;
        mine.add(x);
      }
    }
    __syncwarp();
  }
  if (channel >= w.n_channels) return;
  const std::int64_t at = (beam * w.n_channels + channel) * w.n_cells + cell;
  w.now[at] = out ? CellMoments{0, 0} : mine.moments();
  if (w.n_samples != nullptr) w.n_samples[at] = out || mine.count < 32 ? 0 : mine.count;
}

/// Running medians of means and rms values over neighbouring cells. A thread a cell. kMax: cells
/// that a median is taken over.
template <int kMax>
__global__ void __launch_bounds__(128) medians_kernel(const NormalizeWork w, std::int64_t n_jobs) {
  const std::int64_t job = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (job >= n_jobs) return;
  const auto cell = static_cast<int>(job % w.n_cells);
  const std::int64_t row = job / w.n_cells;  // beam and channel
  const CellMoments* now = w.now + row * w.n_cells;
  const CellMoments* past = w.past + (row + 1) * w.past_room;
  double means[kMax], rmss[kMax];
  int n = 0;
#pragma unroll(kInRegisters <kMax>)
  for (int i = 0; i < kMax; ++i) {
    means[i] = rmss[i] = kNoValue;
    const int k = cell - w.median_cells / 2 + i;
    if (k >= cell + w.median_cells / 2 || k < -w.n_past_cells || k >= w.n_cells) continue;
    const CellMoments m = k < 0 ? past[k] : now[k];
    if (!(m.rms > 0)) continue;
    means[i] = m.mean;
    rmss[i] = m.rms;
    ++n;
  }
  const CellMoments usual{balanced_middle_of(means, n), balanced_middle_of(rmss, n)};
  w.usual[job] = usual;
  if (cell == min(w.n_cells / 2, w.n_cells - 1)) w.typical[row] = usual;
}

/// What samples of each cell become: scale, or the reason why the cell is masked. A thread a cell.
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

/// Keeps the last cells of each channel for the next gulp. A thread a channel of a beam.
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

}  // namespace ryle::search::detail
