// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/wire/lwa.hpp"

#include <cstring>

#include "ryle/wire/bytes.hpp"

namespace ryle::wire {
namespace {

constexpr std::uint32_t kMaxStands = 256;
constexpr std::uint32_t kFrameCountMask = 0xFFFFFF;

bool is_tbf_id(std::uint32_t id) { return id == 1 || id == 5; }
constexpr std::uint32_t kTbxId = 8;

std::uint32_t stands_of(std::uint16_t field) { return field == 0 ? kMaxStands : field; }

Reject check_size(std::size_t have, std::size_t need) {
  if (have < need) return Reject::too_short;
  return have > need ? Reject::too_long : Reject::none;
}

// The dense source id of a frame of n_channels channels. False: not one of the configured ones.
template <class Geometry>
bool stream_of(const Geometry& geometry, std::uint32_t channel, std::uint32_t n_channels,
               std::uint32_t& stream) {
  stream = 0;
  if (geometry.n_streams == 0) return true;
  if (channel < geometry.first_channel) return false;
  const std::uint32_t distance = channel - geometry.first_channel;
  stream = distance / n_channels;
  return distance % n_channels == 0 && stream < geometry.n_streams;
}

struct SpectraHeader {
  std::uint32_t word = 0;  // id << 24 | frame count
  std::uint32_t channel = 0, n_channels = 0, n_stands = 0;
  std::uint64_t time_tag = 0;
  std::size_t header_bytes = 0;
};

template <class Geometry>
Reject finish_spectra(const Geometry& geometry, const SpectraHeader& h, std::size_t size,
                      Packet& packet) {
  if (h.n_stands > kMaxStands || (geometry.n_stands != 0 && h.n_stands != geometry.n_stands))
    return Reject::field;
  if (h.n_channels == 0 || h.n_channels > kLwaMaxChannels) return Reject::field;
  // Not channel + n_channels: the sum of two 32-bit fields may wrap.
  if (h.channel > kLwaMaxChannels - h.n_channels) return Reject::field;
  const std::size_t payload_bytes = std::size_t{h.n_channels} * h.n_stands * 2;
  if (const Reject r = check_size(size, h.header_bytes + payload_bytes); r != Reject::none)
    return r;
  std::uint32_t stream = 0;
  if (!stream_of(geometry, h.channel, h.n_channels, stream)) return Reject::foreign_stream;
  packet = Packet{};
  packet.stream = stream;
  packet.tick_raw = h.time_tag;
  packet.n_ticks = 1;
  packet.channel = h.channel;
  packet.n_channels = h.n_channels;
  packet.n_inputs = 2 * h.n_stands;
  packet.payload_offset = static_cast<std::uint32_t>(h.header_bytes);
  packet.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
  packet.flags = h.word;
  return Reject::none;
}

// What both encoders check; 0 when the packet cannot be written.
template <class Geometry>
std::size_t spectra_bytes(const Geometry& geometry, const Packet& packet, std::size_t payload_bytes,
                          std::size_t header_bytes, std::size_t out_bytes) {
  const std::uint32_t n_stands = packet.n_inputs / 2;
  if (packet.n_inputs % 2 != 0 || n_stands == 0 || n_stands > kMaxStands) return 0;
  if (geometry.n_stands != 0 && n_stands != geometry.n_stands) return 0;
  if (packet.n_channels == 0 || packet.n_channels > kLwaMaxChannels) return 0;
  if (packet.channel > kLwaMaxChannels - packet.n_channels) return 0;
  std::uint32_t stream = 0;
  if (!stream_of(geometry, packet.channel, packet.n_channels, stream)) return 0;
  if (payload_bytes != std::size_t{packet.n_channels} * packet.n_inputs) return 0;
  const std::size_t total = header_bytes + payload_bytes;
  return out_bytes < total ? 0 : total;
}

}  // namespace

Reject decode(const TbfGeometry& geometry, std::span<const std::byte> frame,
              Packet& packet) noexcept {
  if (frame.size() < kTbfHeaderBytes) return Reject::too_short;
  const std::byte* p = frame.data();
  if (load_be<std::uint32_t>(p) != kLwaMagic) return Reject::magic;
  SpectraHeader h;
  h.word = load_be<std::uint32_t>(p + 4);
  if (!is_tbf_id(h.word >> 24)) return Reject::field;
  h.channel = load_be<std::uint16_t>(p + 12);
  h.n_channels = kTbfChannelsPerFrame;
  h.n_stands = stands_of(load_be<std::uint16_t>(p + 14));
  h.time_tag = load_be<std::uint64_t>(p + 16);
  h.header_bytes = kTbfHeaderBytes;
  return finish_spectra(geometry, h, frame.size(), packet);
}

std::size_t encode(const TbfGeometry& geometry, const Packet& packet,
                   std::span<const std::byte> payload, std::span<std::byte> out) noexcept {
  if (packet.n_channels != kTbfChannelsPerFrame || !is_tbf_id(packet.flags >> 24)) return 0;
  const std::size_t total =
      spectra_bytes(geometry, packet, payload.size(), kTbfHeaderBytes, out.size());
  if (total == 0) return 0;
  std::byte* p = out.data();
  const std::uint64_t second = geometry.write_second ? packet.tick_raw / kLwaTicksPerSecond : 0;
  const std::uint32_t n_stands = packet.n_inputs / 2;
  store_be(p, kLwaMagic);
  store_be(p + 4, packet.flags);
  store_be(p + 8, static_cast<std::uint32_t>(second));
  store_be(p + 12, static_cast<std::uint16_t>(packet.channel));
  store_be(p + 14, static_cast<std::uint16_t>(n_stands == kMaxStands ? 0 : n_stands));
  store_be(p + 16, packet.tick_raw);
  std::memcpy(p + kTbfHeaderBytes, payload.data(), payload.size());
  return total;
}

Reject decode(const TbxGeometry& geometry, std::span<const std::byte> frame,
              Packet& packet) noexcept {
  if (frame.size() < kTbxHeaderBytes) return Reject::too_short;
  const std::byte* p = frame.data();
  if (load_be<std::uint32_t>(p) != kLwaMagic) return Reject::magic;
  SpectraHeader h;
  h.word = load_be<std::uint32_t>(p + 4);
  if (h.word >> 24 != kTbxId) return Reject::field;
  h.channel = load_be<std::uint32_t>(p + 12);
  h.n_stands = stands_of(load_be<std::uint16_t>(p + 16));
  h.n_channels = load_be<std::uint16_t>(p + 18);
  if (geometry.n_channels != 0 && h.n_channels != geometry.n_channels) return Reject::field;
  h.time_tag = load_be<std::uint64_t>(p + 20);
  h.header_bytes = kTbxHeaderBytes;
  return finish_spectra(geometry, h, frame.size(), packet);
}

std::size_t encode(const TbxGeometry& geometry, const Packet& packet,
                   std::span<const std::byte> payload, std::span<std::byte> out) noexcept {
  if (packet.flags >> 24 != kTbxId) return 0;
  if (geometry.n_channels != 0 && packet.n_channels != geometry.n_channels) return 0;
  const std::size_t total =
      spectra_bytes(geometry, packet, payload.size(), kTbxHeaderBytes, out.size());
  if (total == 0) return 0;
  std::byte* p = out.data();
  const std::uint32_t n_stands = packet.n_inputs / 2;
  store_be(p, kLwaMagic);
  store_be(p + 4, packet.flags);
  store_be(p + 8, std::uint32_t{0});
  store_be(p + 12, packet.channel);
  store_be(p + 16, static_cast<std::uint16_t>(n_stands == kMaxStands ? 0 : n_stands));
  store_be(p + 18, static_cast<std::uint16_t>(packet.n_channels));
  store_be(p + 20, packet.tick_raw);
  std::memcpy(p + kTbxHeaderBytes, payload.data(), payload.size());
  return total;
}

Reject decode(const TbnGeometry& geometry, std::span<const std::byte> frame,
              Packet& packet) noexcept {
  constexpr std::uint32_t kHeader = 24;
  if (frame.size() < kHeader) return Reject::too_short;
  const std::byte* p = frame.data();
  if (load_be<std::uint32_t>(p) != kLwaMagic) return Reject::magic;
  const std::uint32_t word = load_be<std::uint32_t>(p + 4);
  const std::uint32_t id = load_be<std::uint16_t>(p + 12);
  const std::uint32_t gain = load_be<std::uint16_t>(p + 14);
  // Bits 15 and 14 of the id mark TBW; gain settings are small numbers (0..30).
  if (word >> 24 != 0 || (id & 0xC000) != 0 || gain > 255) return Reject::field;
  if (const Reject r = check_size(frame.size(), kTbnFrameBytes); r != Reject::none) return r;
  if (id == 0 || id > geometry.n_inputs) return Reject::foreign_stream;
  packet = Packet{};
  packet.stream = id - 1;
  packet.tick_raw = load_be<std::uint64_t>(p + 16);
  packet.n_ticks = kTbnSamplesPerFrame;
  packet.channel = load_be<std::uint32_t>(p + 8);
  packet.n_channels = 1;
  packet.input = id - 1;
  packet.n_inputs = 1;
  packet.payload_offset = kHeader;
  packet.payload_bytes = 2 * kTbnSamplesPerFrame;
  packet.flags = gain << 24 | (word & kFrameCountMask);
  return Reject::none;
}

std::size_t encode(const TbnGeometry& geometry, const Packet& packet,
                   std::span<const std::byte> payload, std::span<std::byte> out) noexcept {
  if (packet.stream >= geometry.n_inputs || packet.stream >= 0x3FFF) return 0;
  if (payload.size() != 2 * kTbnSamplesPerFrame || out.size() < kTbnFrameBytes) return 0;
  std::byte* p = out.data();
  store_be(p, kLwaMagic);
  store_be(p + 4, packet.flags & kFrameCountMask);
  store_be(p + 8, packet.channel);
  store_be(p + 12, static_cast<std::uint16_t>(packet.stream + 1));
  store_be(p + 14, static_cast<std::uint16_t>(packet.flags >> 24));
  store_be(p + 16, packet.tick_raw);
  std::memcpy(p + 24, payload.data(), payload.size());
  return kTbnFrameBytes;
}

LwaFrame identify_lwa_frame(std::span<const std::byte> start) noexcept {
  if (start.size() < kTbxHeaderBytes || load_be<std::uint32_t>(start.data()) != kLwaMagic)
    return {};
  const std::byte* p = start.data();
  const std::uint32_t id = load_be<std::uint32_t>(p + 4) >> 24;
  if (id == kTbxId) {
    const std::size_t n_stands = stands_of(load_be<std::uint16_t>(p + 16));
    const std::size_t n_channels = load_be<std::uint16_t>(p + 18);
    if (n_stands > kMaxStands || n_channels == 0 || n_channels > kLwaMaxChannels) return {};
    return {LwaKind::tbx, kTbxHeaderBytes + n_channels * n_stands * 2};
  }
  if (is_tbf_id(id)) {
    const std::size_t n_stands = stands_of(load_be<std::uint16_t>(p + 14));
    if (n_stands > kMaxStands) return {};
    return {LwaKind::tbf, kTbfHeaderBytes + kTbfChannelsPerFrame * n_stands * 2};
  }
  if (id == 0) {
    const bool tbw = (load_be<std::uint16_t>(p + 12) & 0x8000) != 0;
    return tbw ? LwaFrame{LwaKind::tbw, 1224} : LwaFrame{LwaKind::tbn, kTbnFrameBytes};
  }
  if (id == 2) return {LwaKind::cor, 2336};
  // A beamformed stream has beam (1..4), tuning (1, 2) and pol in this byte: 9 and above.
  return {LwaKind::drx, 4128};
}

}  // namespace ryle::wire
