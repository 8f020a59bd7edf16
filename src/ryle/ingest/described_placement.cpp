// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/described_placement.hpp"

#include <cstring>
#include <optional>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/wire/bytes.hpp"

namespace ryle {
namespace {

using wire::Axis;
using wire::SampleCode;

/// Samples below a byte can stay as they are where an instant of a board is whole bytes.
bool rows_of_bytes(const wire::PacketDescription& packet) {
  bool time_done = false;
  for (auto a = packet.order.rbegin(); a != packet.order.rend(); ++a) {
    if (a->axis == Axis::complex || a->pad_bits != 0) return false;
    if (a->axis == Axis::time) time_done = true;
    if (a->axis == Axis::input && time_done && a->extent > 1) return false;
  }
  return packet.extent(Axis::input) * packet.sample.stride_bits() % 8 == 0;
}

/// The format in which samples can be copied as they are.
std::optional<SampleFormat> format_as_sent(const wire::PacketDescription& packet) {
  const SampleCode& s = packet.sample;
  if (s.conjugate) return std::nullopt;
  if (s.word_bytes > 0) {
    const bool five = s.complex && s.bits == 5 && s.word_bytes == 2 && !s.word_big_endian;
    return five ? std::optional(SampleFormat::ci5) : std::nullopt;
  }
  if (s.bits == 8 && s.encoding != Encoding::levels)
    return s.complex ? SampleFormat::ci8 : SampleFormat::i8;
  if (s.bits == 16 && !s.msb_first) return s.complex ? SampleFormat::ci16 : SampleFormat::i16;
  if (s.bits == 4 && s.complex && !packet.has(Axis::complex)) return SampleFormat::ci4;
  if (!rows_of_bytes(packet)) return std::nullopt;
  if (s.bits == 4 && !s.complex) return SampleFormat::i4;
  if (s.bits == 2) return s.complex ? SampleFormat::ci2 : SampleFormat::i2;
  if (s.bits == 1) return s.complex ? SampleFormat::ci1 : SampleFormat::i1;
  return std::nullopt;
}

bool below_a_byte(SampleFormat format) { return bits_per_sample(format) < 8; }

}  // namespace

SampleLayout described_samples(const wire::PacketDescription& packet, std::int64_t n_inputs) {
  const SampleCode& s = packet.sample;
  SampleLayout layout;
  if (const auto format = format_as_sent(packet)) {
    layout.format = *format;
    layout.encoding = s.encoding;
    layout.msb_first = s.msb_first;
    // Parts of whole bytes are put in order on the way.
    layout.imag_first = s.bits == 4 ? s.re_first != s.msb_first : s.bits < 4 && !s.re_first;
    if (*format == SampleFormat::ci5) {
      layout.re_shift = s.re_shift;
      layout.im_shift = s.im_shift;
    }
  } else if (s.bits <= 8) {
    layout.format = s.complex ? SampleFormat::ci8 : SampleFormat::i8;
  } else {
    layout.format = s.complex ? SampleFormat::ci16 : SampleFormat::i16;
  }
  layout.input_stride_bits = bits_per_sample(layout.format);
  layout.sample_stride_bits = layout.input_stride_bits * n_inputs;
  return layout;
}

DescribedPlacement::DescribedPlacement(const wire::PacketDescription& packet, std::int64_t n_inputs)
    : layout_(described_samples(packet, n_inputs)),
      map_(packet),
      copies_(format_as_sent(packet).has_value()),
      packet_ticks_(packet.extent(Axis::time)),
      packet_inputs_(packet.extent(Axis::input)),
      row_bytes_(layout_.sample_stride_bits / 8),
      board_bytes_(packet_inputs_ * layout_.input_stride_bits / 8) {
  RYLE_ASSERT(layout_.sample_stride_bits % 8 == 0 && packet.extent(Axis::channel) == 1);
  if (!copies_) return;
  if (below_a_byte(layout_.format)) {
    copy_ = wire::StridedCopy({{packet_ticks_, board_bytes_, row_bytes_}},
                              static_cast<int>(board_bytes_));
    return;
  }
  const std::int64_t sample_bytes = layout_.input_stride_bits / 8;
  const auto axes = wire::payload_axes(
      packet, {0, row_bytes_, sample_bytes, sample_bytes / packet.sample.n_parts()});
  copy_ = wire::StridedCopy(axes.axes, axes.element_bytes);
  first_bytes_ = axes.first_bytes;
}

std::int64_t DescribedPlacement::chunk_bytes(std::int64_t chunk_slots) const {
  return chunk_slots * packet_ticks_ * row_bytes_;
}

void DescribedPlacement::convert(const std::byte* packet, std::byte* to) const {
  const int n_parts = map_.sample().n_parts();
  const bool wide = map_.sample().bits > 8;
  for (std::int64_t t = 0; t < packet_ticks_; ++t, to += row_bytes_) {
    std::byte* out = to;
    for (std::int64_t i = 0; i < packet_inputs_; ++i) {
      for (int part = 0; part < n_parts; ++part) {
        const int value = map_.part(packet, 0, t, i, part);
        if (wide) {
          wire::store_le(out, static_cast<std::int16_t>(value));
        } else {
          *out = static_cast<std::byte>(value);
        }
        out += wide ? 2 : 1;
      }
    }
  }
}

void DescribedPlacement::place(std::byte* payload, std::int64_t offset, const Run& run) const {
  for (std::int64_t k = 0; k < run.n_slots; ++k) {
    const std::byte* packet = run.data + k * run.stride_bytes;
    std::byte* to = at(payload, offset + k, run.stream);
    copies_ ? copy_.run(packet + first_bytes_, to) : convert(packet, to);
  }
}

bool DescribedPlacement::equal(const std::byte* payload, std::int64_t offset, std::uint32_t stream,
                               const std::byte* bytes) const {
  const std::byte* there = at(const_cast<std::byte*>(payload), offset, stream);
  if (copies_) return copy_.equal(bytes + first_bytes_, there);
  // A second packet of one slot is rare: decode it apart and compare.
  std::vector<std::byte> rows(static_cast<std::size_t>(packet_ticks_ * row_bytes_));
  convert(bytes, rows.data());
  for (std::int64_t t = 0; t < packet_ticks_; ++t) {
    if (std::memcmp(there + t * row_bytes_, rows.data() + t * row_bytes_,
                    static_cast<std::size_t>(board_bytes_)) != 0)
      return false;
  }
  return true;
}

void DescribedPlacement::fill(std::byte* payload, std::uint32_t stream, std::int64_t begin,
                              std::int64_t end) const {
  std::byte* to = at(payload, begin, stream);
  for (std::int64_t t = begin * packet_ticks_; t < end * packet_ticks_; ++t, to += row_bytes_)
    std::memset(to, 0, static_cast<std::size_t>(board_bytes_));
}

}  // namespace ryle
