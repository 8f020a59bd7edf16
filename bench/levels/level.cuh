// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>

#include "ryle/device/cuda/kernel.cuh"
#include "ryle/engine/correlate/cuda/tiles.cuh"

/// What the levels have in common: their data and their result. A level is one published way of
/// arranging the same sums over threads, registers and shared memory, kept short enough to read
/// beside the paper:
///   @eq V_ij = sum_t v_i conj(v_j), i <= j
/// The papers' samples are floats; these are ci8. Levels on fp32 arithmetic (pair to tiled) still
/// sum exactly: a block of 64 spectra adds at most 64 x 2 x 128^2 = 2^21 < 2^24, and blocks are
/// added as integers.
namespace ryle::correlate::levels {

/// A gulp of planar ci8 blocks (core/blocks.hpp). Flagged samples are 0, as everywhere.
struct Gulp {
  const std::byte* data;
  std::int64_t channel_stride_bytes;
  std::int64_t block_stride_bytes;
  std::int64_t input_stride_bytes;
  int n_inputs;
  int n_channels;
  int n_blocks;  ///< at most 1023: int32 sums
};

constexpr int kWordsPerBlock = 16;  // of four spectra each

/// Four consecutive spectra.
struct Packed {
  unsigned re;
  unsigned im;
};

__device__ inline const std::byte* cell(const Gulp& gulp, int channel, int block, int input) {
  return gulp.data + channel * gulp.channel_stride_bytes + block * gulp.block_stride_bytes +
         input * gulp.input_stride_bytes;
}

/// Spectra 4 word .. 4 word + 3 of a cell.
__device__ inline Packed load(const std::byte* cell, int word) {
  const auto* words = reinterpret_cast<const unsigned*>(cell) + word / 8 * 16 + word % 8;
  return {words[0], words[8]};
}

/// Byte k of a word as a signed number. Put below the exponent of 2^23, the byte plus 128 is the
/// mantissa: two quick instructions, where conversions run at an eighth of the rate of sums.
__device__ inline float byte_as_float(unsigned word, int k) {
  const unsigned bits =
      __byte_perm(word ^ 0x80808080u, 0x4B000000u, static_cast<unsigned>(0x7650 + k));
  return __int_as_float(static_cast<int>(bits)) - 8388736.0f;  // 2^23 + 128
}

__device__ inline float2 sample(const Packed& four, int k) {
  return {byte_as_float(four.re, k), byte_as_float(four.im, k)};
}

/// sum += v_i conj(v_j).
__device__ inline void multiply_add(float2& sum, const float2& v_i, const float2& v_j) {
  sum.x += v_i.x * v_j.x;
  sum.x += v_i.y * v_j.y;
  sum.y += v_i.y * v_j.x;
  sum.y -= v_i.x * v_j.y;
}

/// Adds the sum of a block to the whole and begins anew.
__device__ inline void fold(int2& whole, float2& of_block) {
  whole.x += static_cast<int>(of_block.x);
  whole.y += static_cast<int>(of_block.y);
  of_block = {0, 0};
}

/// @shape sums [channel][pair], pair = pair_index(i, j). Pairs beyond the diagonal or the last
/// input are dropped.
__device__ inline void store(const Gulp& gulp, int2* sums, int channel, int i, int j,
                             const int2& sum) {
  if (i > j || j >= gulp.n_inputs || channel >= gulp.n_channels) return;
  const std::int64_t n = gulp.n_inputs;
  sums[channel * (n * (n + 1) / 2) + static_cast<std::int64_t>(j) * (j + 1) / 2 + i] = sum;
}

}  // namespace ryle::correlate::levels
