// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The zero-DM filter on the device: what all channels do at once, and each one's response to it,
// equal to Normalizer (normalize.cpp) bit for bit: compiled without fused multiply-adds.
#include "ryle/engine/search/cuda/normalize_middle.cuh"
#include "ryle/engine/search/cuda/normalize_work.hpp"

namespace ryle::search::detail {

inline constexpr int kResponseThreads = 32;

/// Whether a sample has a code of its own.
__device__ __forceinline__ bool is_used(const NormalizeWork& w, std::int64_t beam, int channel,
                                        std::int64_t t, float x) {
  if (w.user[channel] != 0 || !is_number(x)) return false;
  if (w.times != nullptr && w.times[channel * w.times_stride + t] != 0) return false;
  const std::int64_t at = beam * w.absent_stride + t;
  if (w.absent[at] != 0 || w.masked[at] != 0) return false;
  return w.scales[(beam * w.n_channels + channel) * w.n_cells + t / w.cell_samples].cause == kNone;
}

/// common[beam][time] = the mean of the channels at one time, in units of each one's rms. A thread
/// a time; it walks through the channels, neighbours read neighbouring samples.
__global__ void __launch_bounds__(256) common_kernel(const NormalizeWork w) {
  const std::int64_t t = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t beam = blockIdx.y;
  if (t >= w.in.n) return;
  const float* x = w.in.values + beam * w.in.beam_stride + t;
  float sum = 0, count = 0;
  for (int c = 0; c < w.n_channels; ++c) {
    const float value = x[c * w.in.channel_stride];
    const CellScale s = w.scales[(beam * w.n_channels + c) * w.n_cells + t / w.cell_samples];
    const bool used = is_used(w, beam, c, t, value);
    sum += used ? (value - s.mean) * s.inverse : 0.0f;
    count += used ? 1.0f : 0.0f;
  }
  w.common[beam * w.absent_stride + t] = count > 0 ? sum / count : 0.0f;
  w.common_counts[beam * w.absent_stride + t] = count;
}

/// gains[beam][channel] = the response of a channel to `common`: regression without the channel's
/// own share. A thread a channel, sums in the order of the host. weighted: else every response
/// is 1.
__global__ void __launch_bounds__(kResponseThreads)
    response_kernel(const NormalizeWork w, bool weighted) {
  const int channel = static_cast<int>(blockIdx.x * kResponseThreads + threadIdx.x);
  const std::int64_t beam = blockIdx.y;
  if (channel >= w.n_channels) return;
  const std::int64_t row = beam * w.n_channels + channel;
  const float* x = w.in.values + beam * w.in.beam_stride + channel * w.in.channel_stride;
  double product = 0, square = 0, own = 0, used = 0;
  for (std::int64_t t = 0; weighted && t < w.in.n; ++t) {
    if (!is_used(w, beam, channel, t, x[t])) continue;
    const CellMoments s = w.usual[row * w.n_cells + t / w.cell_samples];
    const auto m = static_cast<double>(w.common[beam * w.absent_stride + t]);
    product += (static_cast<double>(x[t]) - s.mean) / s.rms * m;
    square += m * m;
    own += 1 / static_cast<double>(w.common_counts[beam * w.absent_stride + t]);
    ++used;
  }
  const bool any = weighted && square - own > 3 * own * sqrt(2 / (used > 1 ? used : 1.0));
  const double response = any ? (product - own) / (square - own) : 1;
  w.gains[row] = static_cast<float>(kCodeSigma * response);
}

}  // namespace ryle::search::detail
