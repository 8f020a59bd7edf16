// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/fengine_blocks.hpp"

#include <algorithm>
#include <cstring>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/transpose.hpp"

namespace ryle {
namespace {

constexpr std::int64_t kTile = kTransposeTile;  // inputs, and spectra

// What is left over at the edges, by the definition.
void transpose_bytes(const std::byte* from, std::int64_t from_stride, std::byte* to,
                     std::int64_t to_stride, std::int64_t n_spectra, std::int64_t n_inputs) {
  for (std::int64_t i = 0; i < n_inputs; ++i) {
    for (std::int64_t t = 0; t < n_spectra; ++t) {
      to[i * to_stride + t] = from[t * from_stride + i];
    }
  }
}

struct BlockOffset {
  std::int64_t first_channel = 0, first_input = 0, block = 0;
};

// Whole tiles of a block. 32 spectra at a time are read from end to end, which prefetchers follow;
// the cells they are written to, half a megabyte for a board, stay in the second-level cache until
// the block is full (measured: 1.4 times the speed of going through all 128 spectra channel by
// channel).
void unpack_tiles(const FengineLayout& layout, const std::byte* packets, std::int64_t n_spectra,
                  const BlockOffset& place, const BlockView& out) {
  constexpr std::int64_t kTogether = 32;
  const std::int64_t stride = layout.packet_payload_bytes();
  const std::int64_t n_inputs = layout.inputs_per_packet;
  for (std::int64_t first = 0; first + kTile <= n_spectra; first += kTogether) {
    const std::int64_t last = std::min(first + kTogether, n_spectra / kTile * kTile);
    for (std::int64_t c = 0; c < layout.channels_per_packet; ++c) {
      for (std::int64_t i = 0; i + kTile <= n_inputs; i += kTile) {
        std::byte* cell = out.cell(place.first_channel + c, place.block, place.first_input + i);
        for (std::int64_t t = first; t < last; t += kTile) {
          transpose_tile(packets + t * stride + c * n_inputs + i, stride, cell + t,
                         out.input_stride_bytes);
        }
      }
    }
  }
}

// One block of up to 128 spectra of one stream: tiles, what no tile covers, zeros behind the end.
void unpack_block(const FengineLayout& layout, const std::byte* packets, std::int64_t n_spectra,
                  const BlockOffset& place, const BlockView& out) {
  unpack_tiles(layout, packets, n_spectra, place, out);
  const std::int64_t stride = layout.packet_payload_bytes();
  const std::int64_t n_inputs = layout.inputs_per_packet;
  const std::int64_t tiled_inputs = n_inputs / kTile * kTile;
  const std::int64_t tiled_spectra = n_spectra / kTile * kTile;
  if (tiled_inputs == n_inputs && n_spectra == kBlockBytes) return;
  for (std::int64_t c = 0; c < layout.channels_per_packet; ++c) {
    std::byte* cell = out.cell(place.first_channel + c, place.block, place.first_input);
    const std::byte* row = packets + c * n_inputs;
    transpose_bytes(row + tiled_inputs, stride, cell + tiled_inputs * out.input_stride_bytes,
                    out.input_stride_bytes, tiled_spectra, n_inputs - tiled_inputs);
    transpose_bytes(row + tiled_spectra * stride, stride, cell + tiled_spectra,
                    out.input_stride_bytes, n_spectra - tiled_spectra, n_inputs);
    for (std::int64_t i = 0; i < n_inputs && n_spectra < kBlockBytes; ++i) {
      std::memset(cell + i * out.input_stride_bytes + n_spectra, 0,
                  static_cast<std::size_t>(kBlockBytes - n_spectra));
    }
  }
}

}  // namespace

SpectraShape FengineLayout::shape() const {
  return {n_channels, n_inputs, chunk_spectra, SampleFormat::ci4, n_channel_blocks() > 1};
}

SpectraBlocks::SpectraBlocks(const SpectraShape& shape, MemorySpace memory)
    : bytes(dense_blocks_bytes(shape.format, shape.n_channels, shape.chunk_spectra, shape.n_inputs),
            memory),
      view(dense_blocks(bytes.data(), shape.format, shape.n_channels, shape.chunk_spectra,
                        shape.n_inputs)) {
  mask.words = words_for_bits(shape.chunk_spectra);
  const bool per_channel = shape.mask_per_channel;
  mask.channel_stride_words = per_channel ? shape.n_inputs * mask.words : 0;
  mask.bits.resize((per_channel ? shape.n_channels : 1) * shape.n_inputs * mask.words);
}

std::int64_t spectra_blocks_bytes(const SpectraShape& shape) {
  const std::int64_t masks = shape.mask_per_channel ? shape.n_channels : 1;
  return dense_blocks_bytes(shape.format, shape.n_channels, shape.chunk_spectra, shape.n_inputs) +
         masks * shape.n_inputs * words_for_bits(shape.chunk_spectra) *
             static_cast<std::int64_t>(sizeof(std::uint64_t));
}

void fill_mask(const SpectraShape& shape, std::int64_t n_ticks, SpectraMask& mask) {
  const std::int64_t n_rows = (shape.mask_per_channel ? shape.n_channels : 1) * shape.n_inputs;
  RYLE_ASSERT(mask.words >= words_for_bits(n_ticks) &&
              static_cast<std::int64_t>(mask.bits.size()) >= n_rows * mask.words);
  std::ranges::fill(mask.bits, 0);
  for (std::int64_t row = 0; row < n_rows; ++row)
    set_bits(mask.bits.data() + row * mask.words, 0, n_ticks);
}

BlockView SpectraBlocks::blocks() const {
  BlockView whole = view;
  whole.n_blocks = ryle::n_blocks(view.format, n_spectra);
  return whole;
}

void unpack_blocks(const FengineLayout& layout, const Chunk& chunk, std::int64_t first_block,
                   std::int64_t last_block, std::int64_t first_board, std::int64_t last_board,
                   const BlockView& out) {
  RYLE_ASSERT(chunk.n_ticks <= layout.chunk_spectra && out.n_inputs == layout.n_inputs &&
              out.n_channels == layout.n_channels);
  for (std::int64_t channels = first_block; channels < last_block; ++channels) {
    for (std::int64_t board = first_board; board < last_board; ++board) {
      const std::int64_t stream = channels * layout.n_boards() + board;
      const std::byte* packets =
          chunk.payload.data() + stream * layout.chunk_spectra * layout.packet_payload_bytes();
      for (std::int64_t t = 0; t < chunk.n_ticks; t += kBlockBytes) {
        unpack_block(layout, packets + t * layout.packet_payload_bytes(),
                     std::min(kBlockBytes, chunk.n_ticks - t),
                     {channels * layout.channels_per_packet, board * layout.inputs_per_packet,
                      t / kBlockBytes},
                     out);
      }
    }
  }
}

void unpack_mask(const FengineLayout& layout, const Chunk& chunk, SpectraMask& mask) {
  const bool per_channel = mask.channel_stride_words != 0;
  SpectraShape shape = layout.shape();
  shape.mask_per_channel = per_channel;
  fill_mask(shape, chunk.n_ticks, mask);
  for (const auto& span : chunk.absent) {
    const std::int64_t block = span.input / layout.n_boards();
    const std::int64_t input = span.input % layout.n_boards() * layout.inputs_per_packet;
    const std::int64_t n_channels = per_channel ? layout.channels_per_packet : 1;
    for (std::int64_t c = 0; c < n_channels; ++c) {
      const std::int64_t channel = block * layout.channels_per_packet + c;
      std::uint64_t* rows =
          mask.bits.data() + channel * mask.channel_stride_words + input * mask.words;
      for (std::int64_t i = 0; i < layout.inputs_per_packet; ++i) {
        clear_bits(rows + i * mask.words, span.begin - chunk.first_tick,
                   span.end - chunk.first_tick);
      }
    }
  }
}

void unpack(const FengineLayout& layout, const Chunk& chunk, SpectraBlocks& spectra) {
  spectra.n_spectra = chunk.n_ticks;
  spectra.first_spectrum = chunk.first_tick;
  spectra.segment = chunk.segment;
  spectra.complete = chunk.absent.empty();
  unpack_blocks(layout, chunk, 0, layout.n_channel_blocks(), 0, layout.n_boards(), spectra.view);
  unpack_mask(layout, chunk, spectra.mask);
}

}  // namespace ryle
