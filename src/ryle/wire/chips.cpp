// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/wire/chips.hpp"

#include <cstring>

#include "ryle/wire/bytes.hpp"

namespace ryle::wire {

Reject decode(const ChipsGeometry& geometry, std::span<const std::byte> datagram,
              Packet& packet) noexcept {
  if (datagram.size() < kChipsHeaderBytes) return Reject::too_short;
  const std::byte* p = datagram.data();
  const std::uint32_t board = load_be<std::uint8_t>(p);
  const std::uint32_t n_channels = load_be<std::uint8_t>(p + 2);
  const auto sequence = load_be<std::uint64_t>(p + 8);
  if (board == 0 || n_channels == 0 || sequence == 0) return Reject::field;
  if (geometry.n_channels != 0 && n_channels != geometry.n_channels) return Reject::length;
  const std::size_t payload_bytes = n_channels * kChipsInputsPerBoard;
  if (datagram.size() < kChipsHeaderBytes + payload_bytes) return Reject::too_short;
  if (datagram.size() > kChipsHeaderBytes + payload_bytes) return Reject::too_long;
  if (board > geometry.n_boards) return Reject::foreign_stream;
  packet = Packet{};
  packet.stream = board - 1;
  packet.tick_raw = sequence - 1;
  packet.n_ticks = 1;
  packet.channel = load_be<std::uint16_t>(p + 6);
  packet.n_channels = n_channels;
  packet.input = (board - 1) * kChipsInputsPerBoard;
  packet.n_inputs = kChipsInputsPerBoard;
  packet.payload_offset = kChipsHeaderBytes;
  packet.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
  packet.flags = load_be<std::uint8_t>(p + 1) | std::uint32_t{load_be<std::uint8_t>(p + 3)} << 8 |
                 std::uint32_t{load_be<std::uint8_t>(p + 4)} << 16 |
                 std::uint32_t{load_be<std::uint8_t>(p + 5)} << 24;
  return Reject::none;
}

std::size_t encode(const ChipsGeometry& geometry, const Packet& packet,
                   std::span<const std::byte> payload, std::span<std::byte> out) noexcept {
  if (packet.stream >= geometry.n_boards || packet.stream >= 255) return 0;
  if (packet.n_channels == 0 || packet.n_channels > 255 || packet.channel > 65535) return 0;
  if (geometry.n_channels != 0 && packet.n_channels != geometry.n_channels) return 0;
  if (packet.tick_raw == ~std::uint64_t{0}) return 0;  // seq = tick + 1 would be the invalid 0
  if (payload.size() != std::size_t{packet.n_channels} * kChipsInputsPerBoard) return 0;
  const std::size_t total = kChipsHeaderBytes + payload.size();
  if (out.size() < total) return 0;
  std::byte* p = out.data();
  store_be(p, static_cast<std::uint8_t>(packet.stream + 1));
  store_be(p + 1, static_cast<std::uint8_t>(packet.flags));
  store_be(p + 2, static_cast<std::uint8_t>(packet.n_channels));
  store_be(p + 3, static_cast<std::uint8_t>(packet.flags >> 8));
  store_be(p + 4, static_cast<std::uint8_t>(packet.flags >> 16));
  store_be(p + 5, static_cast<std::uint8_t>(packet.flags >> 24));
  store_be(p + 6, static_cast<std::uint16_t>(packet.channel));
  store_be(p + 8, packet.tick_raw + 1);
  std::memcpy(p + kChipsHeaderBytes, payload.data(), payload.size());
  return total;
}

}  // namespace ryle::wire
