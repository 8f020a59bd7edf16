// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>

#include "ryle/core/samples.hpp"

namespace ryle {

// clang-format off
/// Planar blocks: what channelizer, correlator, beamformer and imager hand to each other. A block is
/// 128 bytes: one channel, one input, consecutive spectra, real and imaginary parts in separate runs.
///
///   format  spectra  layout (numbers are spectra of the block)
///   ci8          64  re 0-31 | im 0-31 | re 32-63 | im 32-63        one byte each
///   cf16         32  re 0-15 | im 0-15 | re 16-31 | im 16-31        two bytes each
///   cf32         16  re 0-7  | re 8-15 | im 0-7   | im 8-15         four bytes each
///   ci4         128  byte t = (re << 4) | (im & 15)
///   ci16         64  two consecutive blocks: floor(x / 256) as ci8, then x & 255 (u8), same places
///
/// Absent or flagged samples and the tail of the last block are exactly 0.
// clang-format on
inline constexpr std::int64_t kBlockBytes = 128;

/// Spectra one block (ci16: one pair of blocks) holds; throws UnsupportedError for formats without
/// planar blocks.
std::int64_t spectra_per_block(SampleFormat format);
/// Bytes one (channel, block, input) cell takes: 128, ci16 256.
std::int64_t bytes_per_cell(SampleFormat format);
/// Blocks needed for n_spectra.
std::int64_t n_blocks(SampleFormat format, std::int64_t n_spectra);

/// A gulp of planar blocks [channel][block][input][128 B]; strides in bytes, multiples of 16, base
/// aligned to 128.
template <class Byte>
struct BasicBlockView {
  Byte* data = nullptr;
  SampleFormat format = SampleFormat::ci8;
  std::int64_t n_channels = 0;
  std::int64_t n_blocks = 0;
  std::int64_t n_inputs = 0;
  std::int64_t channel_stride_bytes = 0;
  std::int64_t block_stride_bytes = 0;
  std::int64_t input_stride_bytes = 0;

  Byte* cell(std::int64_t channel, std::int64_t block, std::int64_t input) const {
    return data + channel * channel_stride_bytes + block * block_stride_bytes +
           input * input_stride_bytes;
  }
  operator BasicBlockView<const std::byte>() const {
    return {data,
            format,
            n_channels,
            n_blocks,
            n_inputs,
            channel_stride_bytes,
            block_stride_bytes,
            input_stride_bytes};
  }
};
using BlockView = BasicBlockView<std::byte>;
using ConstBlockView = BasicBlockView<const std::byte>;

/// Dense view of [channel][block][input] cells over `data`.
BlockView dense_blocks(std::byte* data, SampleFormat format, std::int64_t n_channels,
                       std::int64_t n_spectra, std::int64_t n_inputs);
/// Bytes dense_blocks needs.
std::int64_t dense_blocks_bytes(SampleFormat format, std::int64_t n_channels,
                                std::int64_t n_spectra, std::int64_t n_inputs);

/// One sample of a block, slow, for reference code and tests. Integer formats return integers.
cf64 get_sample(const ConstBlockView& view, std::int64_t channel, std::int64_t spectrum,
                std::int64_t input);
/// Writes one sample (integer formats: must already be in range).
void set_sample(const BlockView& view, std::int64_t channel, std::int64_t spectrum,
                std::int64_t input, cf64 value);

}  // namespace ryle
