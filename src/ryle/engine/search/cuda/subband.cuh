// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/device/cuda/kernel.cuh"
#include "ryle/engine/search/cuda/subband_plan.hpp"

// clang-format off
/// Private to sub-bands on the device: the two stages of subband_plan.hpp.
///   row[r][t] = sum over channels c of a sub-band of x[c][t + relative(r, c)]       subband_rows_kernel
///   D[trial][t] = sum over sub-bands s of row[place(trial, s)][t + start]           subband_trials_kernel
///
///   array       axes                             type            layout
///   w.codes     [channel][sample]                uint8           code_stride bytes from channel to channel
///   w.rows      [row]                            SubbandRow      first channel, channels, relative delays
///   w.scratch   [row][sample]                    uint16          rows of the first stage; stride numbers
///   w.places    [trial][sub-band]                SubbandTerm    row and first sample
///   w.sums      [trial][sample]                  uint16, uint32  sum_stride numbers from trial to trial
///
/// A thread block makes kSubbandTile samples: of one row after the other in the first stage, of kSubbandTrials trials
/// in the second. A thread adds packed numbers, 4 codes or 2 sums a word, and keeps its sums in registers;
/// there is no shared memory and no barrier. docs/decisions/0013 records 1.29 ms for both stages (864 trials
/// of 1,024 channels, 49,152 samples, one H200) and no counters.
// clang-format on
namespace ryle::search::detail {

/// Four bytes from wherever `at` points; whole words are read.
__device__ __forceinline__ unsigned bytes_at(const std::uint8_t* at) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const auto* words = reinterpret_cast<const unsigned*>(address & ~std::uintptr_t{3});
  const auto shift = static_cast<unsigned>(address & 3) * 8;
  const unsigned first = words[0];
  return shift == 0 ? first : first >> shift | words[1] << (32 - shift);
}
/// Two 16-bit sums.
__device__ __forceinline__ unsigned sums_at(const std::uint16_t* row, std::int64_t t) {
  const auto* words = reinterpret_cast<const unsigned*>(row) + t / 2;
  const unsigned first = words[0];
  return t % 2 == 0 ? first : first >> 16 | words[1] << 16;
}

/// First stage. A sub-band has at most 64 channels: sums of codes fit 16 bits, and lanes of a word
/// do not meet.
__global__ void __launch_bounds__(kSubbandThreads) subband_rows_kernel(const SubbandWork w) {
  for (int r = static_cast<int>(blockIdx.y); r < w.n_rows; r += static_cast<int>(gridDim.y)) {
    const SubbandRow row = w.rows[r];
    const std::int32_t* relative = w.relative + row.relative_at;
    const std::int64_t n = w.n_outputs + row.extra;
    const std::uint8_t* codes = w.codes + row.first_channel * w.code_stride + row.low;
#pragma unroll
    for (int k = 0; k < kSubbandWords / 2; ++k) {
      const std::int64_t t = static_cast<std::int64_t>(blockIdx.x) * kSubbandTile +
                             4 * (static_cast<int>(threadIdx.x) + k * kSubbandThreads);
      if (t >= n) continue;
      unsigned even = 0, odd = 0, bytes = 0;
      int in_bytes = 0;
      for (int c = 0; c < row.n_channels; ++c) {
        bytes += bytes_at(codes + c * w.code_stride + t + relative[c]);
        if (++in_bytes < w.byte_channels && c + 1 < row.n_channels) continue;
        even += bytes & 0x00ff00ffu;
        odd += bytes >> 8 & 0x00ff00ffu;
        bytes = 0;
        in_bytes = 0;
      }
      auto* to = reinterpret_cast<unsigned*>(w.scratch + r * w.stride + t);
      to[0] = (even & 0xffffu) | odd << 16;
      to[1] = even >> 16 | (odd & 0xffff0000u);
    }
  }
}

/// Sums of a trial. Words hold two of them, or one where 16 bits do not suffice.
template <bool kWide>
struct SubbandSums {
  unsigned low[kSubbandTrials][kSubbandWords], high[kWide ? kSubbandTrials : 1][kSubbandWords];

  __device__ __forceinline__ void add(int r, int k, unsigned pair) {
    if constexpr (kWide) {
      low[r][k] += pair & 0xffffu;
      high[r][k] += pair >> 16;
    } else {
      low[r][k] += pair;
    }
  }
};

/// Second stage: a row of each sub-band for every trial.
template <bool kWide>
__global__ void __launch_bounds__(kSubbandThreads) subband_trials_kernel(const SubbandWork w) {
  const int first_trial = static_cast<int>(blockIdx.y) * kSubbandTrials;
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * kSubbandTile + 2 * static_cast<int>(threadIdx.x);
  SubbandSums<kWide> sums = {};
  for (int s = 0; s < w.n_subbands; ++s) {
#pragma unroll
    for (int r = 0; r < kSubbandTrials; ++r) {
      const int trial = min(first_trial + r, w.n_trials - 1);
      const SubbandTerm place = w.places[static_cast<std::int64_t>(trial) * w.n_subbands + s];
      const std::uint16_t* row = w.scratch + place.row * w.stride;
#pragma unroll
      for (int k = 0; k < kSubbandWords; ++k)
        sums.add(r, k, sums_at(row, first + 2 * k * kSubbandThreads + place.start));
    }
  }
#pragma unroll
  for (int r = 0; r < kSubbandTrials; ++r) {
    if (first_trial + r >= w.n_trials) break;
    const std::int64_t row = (first_trial + r) * w.sum_stride;
#pragma unroll
    for (int k = 0; k < kSubbandWords; ++k) {
      const std::int64_t t = first + 2 * k * kSubbandThreads;
      if (t >= w.n_outputs) continue;
      const bool both = t + 1 < w.n_outputs;
      if constexpr (kWide) {
        auto* to = static_cast<std::uint32_t*>(w.sums) + row + t;
        to[0] = sums.low[r][k];
        if (both) to[1] = sums.high[r][k];
      } else {
        auto* to = static_cast<std::uint16_t*>(w.sums) + row + t;
        to[0] = static_cast<std::uint16_t>(sums.low[r][k]);
        if (both) to[1] = static_cast<std::uint16_t>(sums.low[r][k] >> 16);
      }
    }
  }
}

}  // namespace ryle::search::detail
