// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/core/blocks.hpp"
#include "ryle/runtime/chunk.hpp"

namespace ryle {

/// Sizes of the planar blocks of a chunk.
struct SpectraShape {
  std::int64_t n_channels = 0;
  std::int64_t n_inputs = 0;
  std::int64_t chunk_spectra = 0;  ///< most a chunk holds
  SampleFormat format = SampleFormat::ci4;
  bool mask_per_channel = true;  ///< channels may be absent one by one
};

/// How a chunk of F-engine packets lies in memory.
/// @shape payload [channel block][board][spectrum][channel in block][input of board] ci4, one byte
/// each, real part in the high bits; stream = channel block * n_boards + board
struct FengineLayout {
  std::int64_t n_channels = 0;
  std::int64_t n_inputs = 0;
  std::int64_t channels_per_packet = 0;
  std::int64_t inputs_per_packet = 0;  ///< of a board; TBF and TBX: all
  std::int64_t chunk_spectra = 0;      ///< most a chunk holds

  std::int64_t n_boards() const { return n_inputs / inputs_per_packet; }
  std::int64_t n_channel_blocks() const { return n_channels / channels_per_packet; }
  std::int64_t n_streams() const { return n_boards() * n_channel_blocks(); }
  std::int64_t packet_payload_bytes() const { return channels_per_packet * inputs_per_packet; }
  std::int64_t chunk_bytes() const { return chunk_spectra * n_channels * n_inputs; }
  SpectraShape shape() const;
};

/// What of a chunk never came, a bit per (channel, input, spectrum), 1 = present: the form
/// image::FieldInput and correlate::Input take.
struct SpectraMask {
  std::vector<std::uint64_t> bits;  ///< [channel or 1][input][words]
  std::int64_t words = 0;
  std::int64_t channel_stride_words = 0;  ///< 0: one mask for all channels
};

/// Room for the blocks and masks of one chunk; allocated once.
struct SpectraBlocks {
  explicit SpectraBlocks(const SpectraShape& shape, MemorySpace memory = MemorySpace::host);

  Buffer<std::byte> bytes;
  SpectraMask mask;
  bool complete = false;  ///< nothing is absent
  std::int64_t n_spectra = 0;
  Tick first_spectrum = 0;
  std::int64_t segment = 0;

  /// [channel][block][input] of the last chunk: as many blocks as its spectra need.
  BlockView blocks() const;
  /// nullptr when complete.
  const std::uint64_t* valid() const { return complete ? nullptr : mask.bits.data(); }

  BlockView view;  ///< all of `bytes`
};

/// What SpectraBlocks of this shape take, masks included (for plans, without allocating).
std::int64_t spectra_blocks_bytes(const SpectraShape& shape);
/// All present: [0, n_ticks) of every row of the mask. What is absent is then cleared.
void fill_mask(const SpectraShape& shape, std::int64_t n_ticks, SpectraMask& mask);

/// Turns a chunk into planar blocks and a mask: byte t of a block is the byte that was sent, so
/// this is a transpose of bytes. Absent samples and the tail of the last block are 0.
void unpack(const FengineLayout& layout, const Chunk& chunk, SpectraBlocks& spectra);

/// Parts of unpack(), for those who share the work among threads: channels of whole channel blocks
/// [first_block, last_block) and boards [first_board, last_board) into `out`.
void unpack_blocks(const FengineLayout& layout, const Chunk& chunk, std::int64_t first_block,
                   std::int64_t last_block, std::int64_t first_board, std::int64_t last_board,
                   const BlockView& out);
void unpack_mask(const FengineLayout& layout, const Chunk& chunk, SpectraMask& mask);

}  // namespace ryle
