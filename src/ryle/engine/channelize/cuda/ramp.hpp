// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

/// What the CUDA channelizer's kernels pass on to each other and to the host; needs no header of
/// CUDA.
namespace ryle::channelize::detail {

/// What is known of one (input, spectrum) before its samples are: phase in 2^-64 turns (base +
/// channel * slope), first sample of the window relative to tick 0, dither key, and whether it is
/// valid at all.
struct alignas(16) CudaRamp {
  std::uint64_t base;
  std::uint64_t slope;
  std::int64_t begin;
  std::uint32_t dither_key;
  std::uint32_t valid;
};

/// 16 bytes per (channel, input), cleared before each call; squares holds an integer or, for float
/// output, a double.
struct CudaStatistics {
  unsigned int saturated_low;
  unsigned int saturated_high;
  union {
    unsigned long long integer;
    double real;
  } squares;
};

}  // namespace ryle::channelize::detail
