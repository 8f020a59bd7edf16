// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_fp16.h>

#include "ryle/engine/beamform/cuda/kernels.cuh"

/// Private to the CUDA beamformer: one sample of any format, for the kernels that are not in a
/// hurry.
namespace ryle::beamform::detail {

__device__ inline const std::uint8_t* sample_address(const CudaSamples& s, std::int64_t channel,
                                                     std::int64_t t, int input, int bytes) {
  const std::uint8_t* at = s.data + channel * s.channel_stride_bytes;
  if (s.block_spectra == 0) return at + t * s.step_stride_bytes + input * bytes;
  const std::int64_t block = t / s.block_spectra;
  const std::int64_t in_block = t - block * s.block_spectra;
  return at + block * s.step_stride_bytes +
         ((input / 2 * s.block_spectra + in_block) * 2 + input % 2) * bytes;
}

template <class T>
__device__ T unaligned(const std::uint8_t* at) {
  T value;
  auto* to = reinterpret_cast<std::uint8_t*>(&value);
#pragma unroll
  for (int k = 0; k < static_cast<int>(sizeof(T)); ++k) to[k] = at[k];
  return value;
}

__device__ inline float2 sample_value(const CudaSamples& s, std::int64_t channel, std::int64_t t,
                                      int input) {
  switch (s.format) {
    case SampleFormat::ci4: {
      const int byte = *sample_address(s, channel, t, input, 1);
      if (s.table != nullptr) {
        const char2 v = s.table[byte];
        return {static_cast<float>(v.x), static_cast<float>(v.y)};
      }
      return {static_cast<float>((byte >> 4 ^ 8) - 8), static_cast<float>(((byte & 15) ^ 8) - 8)};
    }
    case SampleFormat::ci8: {
      const auto v = unaligned<char2>(sample_address(s, channel, t, input, 2));
      return {static_cast<float>(v.x), static_cast<float>(v.y)};
    }
    case SampleFormat::ci16: {
      const auto v = unaligned<short2>(sample_address(s, channel, t, input, 4));
      return {static_cast<float>(v.x), static_cast<float>(v.y)};
    }
    case SampleFormat::cf16: {
      const auto v = unaligned<ushort2>(sample_address(s, channel, t, input, 4));
      return {__half2float(__ushort_as_half(v.x)), __half2float(__ushort_as_half(v.y))};
    }
    default:
      return unaligned<float2>(sample_address(s, channel, t, input, 8));
  }
}

}  // namespace ryle::beamform::detail
