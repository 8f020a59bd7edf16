// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/wire/best2.hpp"

#include <cstring>

#include "ryle/wire/bytes.hpp"

namespace ryle::wire {
namespace {

constexpr std::uint32_t kPayloadBytes = 4096;
constexpr std::uint32_t kHalf = kBest2Channels / 2;

constexpr std::uint32_t sky_channel(std::uint32_t c) {
  return c % 2 == 0 ? c / 2 : kHalf + (c - 1) / 2;
}
constexpr std::uint32_t wire_channel(std::uint32_t k) {
  return k < kHalf ? 2 * k : 2 * (k - kHalf) + 1;
}

}  // namespace

Reject decode(const Best2Geometry& geometry, std::span<const std::byte> datagram,
              Packet& packet) noexcept {
  if (datagram.size() < kBest2PacketBytes) return Reject::too_short;
  if (datagram.size() > kBest2PacketBytes) return Reject::too_long;
  const auto word = load_be<std::uint64_t>(datagram.data());
  const std::uint32_t channel = sky_channel(static_cast<std::uint32_t>(word >> 16) & 1023u);
  if (channel < geometry.first_channel || channel - geometry.first_channel >= geometry.n_channels) {
    return Reject::foreign_stream;
  }
  packet = Packet{};
  packet.stream = channel - geometry.first_channel;
  packet.tick_raw = word >> 26;
  packet.tick_bits = 38;
  packet.n_ticks = kBest2Samples;
  packet.channel = channel;
  packet.n_channels = 1;
  packet.n_inputs = kBest2Antennas;
  packet.payload_offset = 8;
  packet.payload_bytes = kPayloadBytes;
  return Reject::none;
}

std::size_t encode(const Best2Geometry& geometry, const Packet& packet,
                   std::span<const std::byte> payload, std::span<std::byte> out) noexcept {
  if (packet.channel >= kBest2Channels || packet.channel < geometry.first_channel) return 0;
  if (packet.channel - geometry.first_channel >= geometry.n_channels) return 0;
  if (payload.size() != kPayloadBytes || out.size() < kBest2PacketBytes) return 0;
  const std::uint64_t word = packet.tick_raw << 26 | std::uint64_t{wire_channel(packet.channel)}
                                                         << 16;
  store_be(out.data(), word);
  std::memcpy(out.data() + 8, payload.data(), kPayloadBytes);
  return kBest2PacketBytes;
}

}  // namespace ryle::wire
