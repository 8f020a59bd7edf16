// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <span>

#include "ryle/core/blocks.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/engine/beamform/beamform.hpp"

namespace ryle::beamform {

/// Planar blocks, as channelizer and correlator have them, to samples in the order that a
/// beamformer takes: dense, of whole blocks of `block_spectra` where the order is pairs. Sample
/// (channel, t, k) is that of channel first_channel + channel, input inputs[k] of the blocks.
struct BlocksImport {
  InputOrder order = InputOrder::spectra;
  std::int64_t block_spectra = 128;  ///< pairs: spectra per block of the result
  std::int64_t first_channel = 0;
  std::int64_t n_channels = 0;
  std::span<const std::int32_t> inputs;  ///< where the queue's engines read
  std::int64_t n_spectra = 0;

  std::int64_t n_inputs() const { return static_cast<std::int64_t>(inputs.size()); }
};

/// Bytes of a sample in memory. Throws UnsupportedError for other formats than ci4 and ci8.
std::int64_t sample_bytes(SampleFormat format);
/// Of the result, from channel to channel.
std::int64_t imported_channel_bytes(const BlocksImport& what, SampleFormat format);

/// Moves whole samples, changes none. Asynchronous on the queue; all memory is where the queue's
/// engines read. Of a last block of pairs what lies beyond n_spectra holds anything.
void import_blocks(Queue& queue, const ConstBlockView& blocks, const BlocksImport& what,
                   std::byte* samples);

}  // namespace ryle::beamform
