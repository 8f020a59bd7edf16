// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/engine/image/cuda/all_sky_kernels.cuh"

/// Samples of planar blocks (core/blocks.hpp) in device code.
namespace ryle::image::detail {

__device__ inline int high_nibble(unsigned byte) { return static_cast<int>(byte << 24) >> 28; }
__device__ inline int low_nibble(unsigned byte) { return static_cast<int>(byte << 28) >> 28; }

__device__ inline const std::byte* cell_of(const FieldBlocks& b, int channel, int block,
                                           int input) {
  return b.data + channel * b.channel_stride + block * b.block_stride + input * b.input_stride;
}

__device__ inline int2 sample(const FieldBlocks& b, int channel, int t, int input) {
  if (b.nibbles) {
    const auto* cell = cell_of(b, channel, t / 128, input);
    const auto byte = static_cast<unsigned>(cell[t % 128]);
    return {high_nibble(byte), low_nibble(byte)};
  }
  const auto* cell = reinterpret_cast<const signed char*>(cell_of(b, channel, t / 64, input)) +
                     t % 64 / 32 * 64 + t % 32;
  return {cell[0], cell[32]};
}

struct int4x2 {
  int re[4];
  int im[4];
};
/// Spectra t .. t + 3, t a multiple of four.
__device__ inline int4x2 four_samples(const FieldBlocks& b, int channel, int t, int input) {
  int4x2 v;
  if (b.nibbles) {
    const unsigned word =
        *reinterpret_cast<const unsigned*>(cell_of(b, channel, t / 128, input) + t % 128);
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      v.re[s] = high_nibble(word >> (8 * s) & 255u);
      v.im[s] = low_nibble(word >> (8 * s) & 255u);
    }
    return v;
  }
  const auto* cell = cell_of(b, channel, t / 64, input) + t % 64 / 32 * 64 + t % 32;
  const unsigned re = *reinterpret_cast<const unsigned*>(cell);
  const unsigned im = *reinterpret_cast<const unsigned*>(cell + 32);
#pragma unroll
  for (int s = 0; s < 4; ++s) {
    v.re[s] = static_cast<int>(re << (24 - 8 * s)) >> 24;
    v.im[s] = static_cast<int>(im << (24 - 8 * s)) >> 24;
  }
  return v;
}

}  // namespace ryle::image::detail
