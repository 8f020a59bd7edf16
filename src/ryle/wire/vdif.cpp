// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/wire/vdif.hpp"

#include <bit>
#include <cstring>

#include "ryle/wire/bytes.hpp"

namespace ryle::wire {
namespace {

constexpr std::uint32_t kSync = 0xACABFEED;
constexpr std::uint32_t kSecondsMask = 0x3FFFFFFF;
constexpr std::uint32_t kFrameMask = 0xFFFFFF;

// Complete samples per channel in a payload. No elementary sample crosses a 32-bit word, so a word
// holds floor(32 / bits) of them (a complex pair counts as one). 0: no whole number.
std::uint32_t samples_in(std::uint32_t payload_bytes, std::uint32_t n_channels, std::uint32_t bits,
                         bool complex) {
  const std::uint64_t n_words = payload_bytes / 4;
  const std::uint32_t pair_bits = complex ? 2 * bits : bits;
  const std::uint64_t elements = pair_bits <= 32 ? n_words * (32 / pair_bits) : n_words / 2;
  if (pair_bits > 32 && n_words % 2 != 0) return 0;
  if (elements % n_channels != 0) return 0;
  return static_cast<std::uint32_t>(elements / n_channels);
}

}  // namespace

Reject parse_vdif_header(std::span<const std::byte> start, VdifHeader& header) noexcept {
  if (start.size() < kVdifLegacyHeaderBytes) return Reject::too_short;
  const auto word = [&](std::size_t k) { return load_le<std::uint32_t>(start.data() + 4 * k); };
  header = VdifHeader{};
  header.invalid = word(0) >> 31 != 0;
  header.legacy = (word(0) >> 30 & 1) != 0;
  header.seconds = word(0) & kSecondsMask;
  header.reference_epoch = word(1) >> 24 & 63;
  header.frame = word(1) & kFrameMask;
  header.version = word(2) >> 29;
  header.n_channels = std::uint32_t{1} << (word(2) >> 24 & 31);
  header.frame_bytes = (word(2) & kFrameMask) * 8;
  header.complex = word(3) >> 31 != 0;
  header.bits = (word(3) >> 26 & 31) + 1;
  header.thread = word(3) >> 16 & 1023;
  header.station = word(3) & 0xFFFF;
  if (header.frame_bytes <= header.header_bytes()) return Reject::length;
  if (!header.legacy) {
    if (start.size() < kVdifHeaderBytes) return Reject::too_short;
    header.edv = word(4) >> 24;
    if ((header.edv == 1 || header.edv == 3) && word(5) == kSync) {
      // The field is the bandwidth of a channel: real data has twice as many samples.
      const std::uint64_t unit = (word(4) >> 23 & 1) != 0 ? 1'000'000 : 1'000;
      header.sample_rate_hz = (word(4) & 0x7FFFFF) * unit * (header.complex ? 1 : 2);
    }
  }
  const auto payload_bytes = static_cast<std::uint32_t>(header.frame_bytes - header.header_bytes());
  header.samples_per_frame =
      samples_in(payload_bytes, header.n_channels, header.bits, header.complex);
  return Reject::none;
}

Reject decode(const VdifGeometry& geometry, std::span<const std::byte> frame,
              Packet& packet) noexcept {
  VdifHeader h;
  if (const Reject r = parse_vdif_header(frame, h); r != Reject::none) return r;
  if (geometry.frame_bytes != 0 && h.frame_bytes != geometry.frame_bytes) return Reject::length;
  if (frame.size() < h.frame_bytes) return Reject::too_short;
  if (frame.size() > h.frame_bytes) return Reject::too_long;
  if (h.invalid) return Reject::sender_invalid;
  if (h.samples_per_frame == 0) return Reject::field;
  if (geometry.frames_per_second != 0 && h.frame >= geometry.frames_per_second)
    return Reject::field;
  if (h.thread >= geometry.n_streams) return Reject::foreign_stream;
  packet = Packet{};
  packet.stream = h.thread;
  if (geometry.frames_per_second != 0) {
    packet.tick_raw = std::uint64_t{h.seconds} * geometry.frames_per_second + h.frame;
  } else {
    packet.tick_raw = std::uint64_t{h.seconds} << 24 | h.frame;
    packet.tick_bits = 54;
  }
  packet.n_ticks = h.samples_per_frame;
  packet.n_channels = h.n_channels;
  packet.input = h.thread;
  packet.n_inputs = 1;
  packet.payload_offset = static_cast<std::uint32_t>(h.header_bytes());
  packet.payload_bytes = h.frame_bytes - packet.payload_offset;
  packet.flags = h.reference_epoch | (h.legacy ? 1u << 6 : 0u) | (h.complex ? 1u << 7 : 0u) |
                 (h.bits - 1) << 8 | h.version << 13 | h.station << 16;
  return Reject::none;
}

std::size_t encode(const VdifGeometry& geometry, const Packet& packet,
                   std::span<const std::byte> payload, std::span<std::byte> out) noexcept {
  const bool legacy = (packet.flags >> 6 & 1) != 0;
  const std::size_t header_bytes = legacy ? kVdifLegacyHeaderBytes : kVdifHeaderBytes;
  const std::size_t total = header_bytes + payload.size();
  if (packet.stream >= geometry.n_streams || packet.stream > 1023 ||
      !std::has_single_bit(packet.n_channels))
    return 0;
  if (payload.empty() || total % 8 != 0 || total / 8 > kFrameMask || out.size() < total) return 0;
  if (geometry.frame_bytes != 0 && total != geometry.frame_bytes) return 0;
  const std::uint64_t fps = geometry.frames_per_second;
  const std::uint64_t seconds = fps != 0 ? packet.tick_raw / fps : packet.tick_raw >> 24;
  const std::uint64_t frame = fps != 0 ? packet.tick_raw % fps : packet.tick_raw & kFrameMask;
  if (seconds > kSecondsMask || frame > kFrameMask) return 0;
  const std::uint32_t bits_field = packet.flags >> 8 & 31;
  const bool complex = (packet.flags >> 7 & 1) != 0;
  if (samples_in(static_cast<std::uint32_t>(payload.size()), packet.n_channels, bits_field + 1,
                 complex) != packet.n_ticks ||
      packet.n_ticks == 0) {
    return 0;
  }
  std::byte* p = out.data();
  const auto log2_channels = static_cast<std::uint32_t>(std::countr_zero(packet.n_channels));
  store_le(p, static_cast<std::uint32_t>(seconds) | (legacy ? 1u << 30 : 0u));
  store_le(p + 4, (packet.flags & 63) << 24 | static_cast<std::uint32_t>(frame));
  store_le(p + 8, (packet.flags >> 13 & 7) << 29 | log2_channels << 24 |
                      static_cast<std::uint32_t>(total / 8));
  store_le(p + 12,
           (complex ? 1u << 31 : 0u) | bits_field << 26 | packet.stream << 16 | packet.flags >> 16);
  if (!legacy) std::memcpy(p + 16, geometry.extended.data(), 16);
  std::memcpy(p + header_bytes, payload.data(), payload.size());
  return total;
}

}  // namespace ryle::wire
