// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/described_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"

namespace ryle {
namespace {

using wire::Axis;
using wire::CopyAxis;

SampleFormat block_format(const wire::PacketDescription& packet) {
  const wire::SampleCode& s = packet.sample;
  if (!s.complex)
    throw ConfigError(
        "source.packet: payload.sample is real; spectra of an F-engine are complex (\"ci4\", "
        "\"ci8\", ...)");
  if (s.bits == 4 && s.word_bytes == 0 && !packet.has(Axis::complex) &&
      s.encoding != Encoding::levels)
    return SampleFormat::ci4;
  return s.bits <= 8 ? SampleFormat::ci8 : SampleFormat::ci16;
}

/// The index t of spectra as a block has it, innermost first: runs, and runs in a block.
std::vector<CopyAxis> block_axes(SampleFormat format) {
  if (format == SampleFormat::ci4) return {{kBlockBytes, 0, 1}};
  constexpr std::int64_t kRun = 32;  // ci8: re 0-31 | im 0-31 | re 32-63 | im 32-63
  return {{kRun, 0, 1}, {2, 0, 2 * kRun}};
}

/// One index that two orders divide into digits of their own, innermost first: digits that both can
/// walk. Empty where neither of two digits divides the other.
std::optional<std::vector<CopyAxis>> common_digits(std::vector<CopyAxis> from,
                                                   std::vector<CopyAxis> to) {
  std::vector<CopyAxis> digits;
  std::size_t f = 0, t = 0;
  while (f < from.size() && t < to.size()) {
    CopyAxis& a = from[f];
    CopyAxis& b = to[t];
    const std::int64_t n = std::gcd(a.n, b.n);
    if (n != a.n && n != b.n) return std::nullopt;
    if (n > 1) digits.push_back({n, a.from, b.to});
    a.n /= n;
    a.from *= n;
    b.n /= n;
    b.to *= n;
    f += a.n == 1;
    t += b.n == 1;
  }
  return digits;
}

}  // namespace

DescribedBlocks::DescribedBlocks(const wire::PacketDescription& packet, const Shape& shape)
    : shape_(shape),
      format_(block_format(packet)),
      map_(packet),
      packet_channels_(packet.extent(Axis::channel)),
      packet_spectra_(packet.extent(Axis::time)),
      packet_inputs_(packet.extent(Axis::input)),
      payload_bytes_(packet.payload_bytes()),
      n_blocks_(shape.n_channels / packet_channels_),
      n_boards_(shape.n_inputs / packet_inputs_),
      block_spectra_(spectra_per_block(format_)) {
  if (shape.n_channels < 1 || shape.n_channels % packet_channels_ != 0)
    throw ConfigError("source.n_channels = " + std::to_string(shape.n_channels) +
                      " is no multiple of the " + std::to_string(packet_channels_) +
                      " channels of a packet (source.packet, payload.extents)");
  if (shape.n_inputs < 1 || shape.n_inputs % packet_inputs_ != 0)
    throw ConfigError("the array has " + std::to_string(shape.n_inputs) +
                      " inputs, which packets of " + std::to_string(packet_inputs_) +
                      " (source.packet, payload.extents) do not divide");
  RYLE_ASSERT(shape.chunk_spectra % block_spectra_ == 0 &&
              shape.chunk_spectra % packet_spectra_ == 0);
  const wire::SampleCode& s = packet.sample;
  if (s.encoding == Encoding::offset_binary) flip_ = format_ == SampleFormat::ci4 ? 0x88 : 0x80;
  swap_nibbles_ = format_ == SampleFormat::ci4 && s.re_first != s.msb_first;
  const bool bytes = format_ == SampleFormat::ci4 ||
                     (s.bits == 8 && s.word_bytes == 0 && s.encoding != Encoding::levels);
  const bool whole = block_spectra_ % packet_spectra_ == 0 || packet_spectra_ % block_spectra_ == 0;
  if (!bytes || !whole || s.conjugate) return;
  // Channels, inputs and parts of a packet as they are; its spectra, and packets after packets, in
  // digits that the payload and a block share.
  const SpectraShape spectra = spectra_shape();
  const std::int64_t channel_bytes =
      dense_blocks_bytes(format_, 1, shape.chunk_spectra, spectra.n_inputs);
  const auto all = wire::payload_axes(packet, {shape.descending ? -channel_bytes : channel_bytes, 0,
                                               kBlockBytes, block_spectra_ / 2});
  std::vector<CopyAxis> axes, time;
  for (std::size_t k = all.axes.size(); k-- > 0;) {
    const bool is_time = k < packet.order.size() && packet.order[k].axis == Axis::time;
    (is_time ? time : axes).push_back(all.axes[k]);
  }
  time.push_back({std::max<std::int64_t>(1, block_spectra_ / packet_spectra_), payload_bytes_, 0});
  const auto digits = common_digits(time, block_axes(format_));
  if (!digits) return;
  axes.insert(axes.end(), digits->begin(), digits->end());
  copy_ = wire::StridedCopy(axes, all.element_bytes);
  first_bytes_ = all.first_bytes;
  copies_ = true;
}

SpectraShape DescribedBlocks::spectra_shape() const {
  return {shape_.n_channels, shape_.n_inputs, shape_.chunk_spectra, format_, n_blocks_ > 1};
}

// Of the first channel in a packet of a block; blocks ascend in frequency.
std::int64_t DescribedBlocks::memory_channel(std::int64_t block) const {
  const std::int64_t lowest = block * packet_channels_;
  return shape_.descending ? lowest + packet_channels_ - 1 : lowest;
}

void DescribedBlocks::copy_block(const std::byte* packets, std::int64_t block,
                                 std::byte* cells) const {
  const std::int64_t spectrum = block * block_spectra_;
  const std::int64_t slot = spectrum / packet_spectra_;
  const std::int64_t within_bits = map_.bits(Axis::time)[spectrum % packet_spectra_];
  copy_.run(packets + slot * payload_bytes_ + within_bits / 8 + first_bytes_, cells);
}

void DescribedBlocks::convert_block(const std::byte* packets, std::int64_t block,
                                    std::int64_t stream, std::int64_t n_spectra,
                                    const BlockView& out) const {
  const std::int64_t first_input = stream % n_boards_ * packet_inputs_;
  const std::int64_t first_channel = memory_channel(stream / n_boards_);
  const std::int64_t end = std::min((block + 1) * block_spectra_, n_spectra);
  for (std::int64_t t = block * block_spectra_; t < end; ++t) {
    const std::byte* packet = packets + t / packet_spectra_ * payload_bytes_;
    for (std::int64_t c = 0; c < packet_channels_; ++c) {
      for (std::int64_t i = 0; i < packet_inputs_; ++i) {
        const std::int64_t k = t % packet_spectra_;
        set_sample(out, shape_.descending ? first_channel - c : first_channel + c, t,
                   first_input + i,
                   {static_cast<double>(map_.part(packet, c, k, i, 0)),
                    static_cast<double>(map_.part(packet, c, k, i, 1))});
      }
    }
  }
}

// Codes as sent to two's complement with the real part in the high bits.
void DescribedBlocks::finish_codes(std::int64_t stream, std::int64_t block,
                                   const BlockView& out) const {
  if (flip_ == 0 && !swap_nibbles_) return;
  const std::int64_t first = memory_channel(stream / n_boards_);
  for (std::int64_t c = 0; c < packet_channels_; ++c) {
    for (std::int64_t i = 0; i < packet_inputs_; ++i) {
      auto* cell =
          reinterpret_cast<std::uint8_t*>(out.cell(shape_.descending ? first - c : first + c, block,
                                                   stream % n_boards_ * packet_inputs_ + i));
      for (std::int64_t k = 0; k < kBlockBytes; ++k) {
        const auto byte = static_cast<std::uint8_t>(cell[k] ^ flip_);
        cell[k] = swap_nibbles_ ? static_cast<std::uint8_t>(byte << 4 | byte >> 4) : byte;
      }
    }
  }
}

// Spectra [begin, end) of the chunk of all channels and inputs of a stream become 0.
void DescribedBlocks::clear(std::int64_t stream, std::int64_t begin, std::int64_t end,
                            const BlockView& out) const {
  const std::int64_t cell_bytes = bytes_per_cell(format_);
  const std::int64_t first = memory_channel(stream / n_boards_);
  for (std::int64_t c = 0; c < packet_channels_; ++c) {
    const std::int64_t channel = shape_.descending ? first - c : first + c;
    for (std::int64_t i = 0; i < packet_inputs_; ++i) {
      const std::int64_t input = stream % n_boards_ * packet_inputs_ + i;
      for (std::int64_t t = begin; t < end;) {
        const std::int64_t block = t / block_spectra_;
        const std::int64_t stop = std::min(end, (block + 1) * block_spectra_);
        if (stop - t == block_spectra_) {
          std::memset(out.cell(channel, block, input), 0, static_cast<std::size_t>(cell_bytes));
        } else {
          for (std::int64_t k = t; k < stop; ++k) set_sample(out, channel, k, input, {});
        }
        t = stop;
      }
    }
  }
}

void DescribedBlocks::unpack(const Chunk& chunk, SpectraBlocks& spectra) const {
  spectra.n_spectra = chunk.n_ticks;
  spectra.first_spectrum = chunk.first_tick;
  spectra.segment = chunk.segment;
  spectra.complete = chunk.absent.empty();
  const std::int64_t n_blocks = (chunk.n_ticks + block_spectra_ - 1) / block_spectra_;
  const std::int64_t stream_bytes = shape_.chunk_spectra / packet_spectra_ * payload_bytes_;
  for (std::int64_t stream = 0; stream < n_streams(); ++stream) {
    const std::byte* packets = chunk.payload.data() + stream * stream_bytes;
    for (std::int64_t block = 0; block < n_blocks; ++block) {
      if (!copies_) {
        convert_block(packets, block, stream, chunk.n_ticks, spectra.view);
        continue;
      }
      copy_block(packets, block,
                 spectra.view.cell(memory_channel(stream / n_boards_), block,
                                   stream % n_boards_ * packet_inputs_));
      finish_codes(stream, block, spectra.view);
    }
    clear(stream, chunk.n_ticks, n_blocks * block_spectra_, spectra.view);
  }
  fill_mask(spectra_shape(), chunk.n_ticks, spectra.mask);
  const bool per_channel = spectra.mask.channel_stride_words != 0;
  for (const auto& span : chunk.absent) {
    const std::int64_t begin = span.begin - chunk.first_tick, end = span.end - chunk.first_tick;
    clear(span.input, begin, end, spectra.view);
    const std::int64_t first = memory_channel(span.input / n_boards_);
    for (std::int64_t c = 0; c < (per_channel ? packet_channels_ : 1); ++c) {
      const std::int64_t channel = per_channel ? (shape_.descending ? first - c : first + c) : 0;
      std::uint64_t* rows = spectra.mask.bits.data() + channel * spectra.mask.channel_stride_words +
                            span.input % n_boards_ * packet_inputs_ * spectra.mask.words;
      for (std::int64_t i = 0; i < packet_inputs_; ++i)
        clear_bits(rows + i * spectra.mask.words, begin, end);
    }
  }
}

}  // namespace ryle
