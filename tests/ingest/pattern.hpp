// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "ryle/core/random.hpp"
#include "ryle/core/time.hpp"
#include "ryle/wire/mwa32t.hpp"

namespace ryle::test {

/// Data word of an input of a receiver at a tick: ten bits, never 0, so that a filled sample is
/// told from a sent one.
inline std::uint16_t pattern_word(std::uint32_t receiver, std::int64_t tick, int input) {
  const auto key =
      combine(receiver, static_cast<std::uint64_t>(tick), static_cast<std::uint64_t>(input));
  return static_cast<std::uint16_t>(1 + key % 1023);
}

/// n instants of one receiver, markers stripped: [tick][16] u16 LE.
inline std::vector<std::byte> pattern_payload(std::uint32_t receiver, std::int64_t tick,
                                              std::int64_t n) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(n) * 32);
  for (std::int64_t t = 0; t < n; ++t) {
    for (int i = 0; i < 16; ++i) {
      const std::uint16_t word = pattern_word(receiver, tick + t, i);
      std::memcpy(bytes.data() + t * 32 + i * 2, &word, 2);
    }
  }
  return bytes;
}

/// The same as 34-byte groups; marker word = marker of (tick + marker_offset).
inline std::vector<std::byte> pattern_groups(const wire::Mwa32tMarker& marker,
                                             std::uint32_t receiver, std::int64_t tick,
                                             std::int64_t n, std::int64_t marker_offset = 0) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(n) * 34);
  const auto payload = pattern_payload(receiver, tick, n);
  for (std::int64_t t = 0; t < n; ++t) {
    const std::uint16_t word = wire::mwa32t_marker_word(marker, tick + t + marker_offset);
    std::memcpy(bytes.data() + t * 34, &word, 2);
    std::memcpy(bytes.data() + t * 34 + 2, payload.data() + t * 32, 32);
  }
  return bytes;
}

/// One mwa32t-udp datagram.
inline std::vector<std::byte> pattern_datagram(std::uint32_t receiver, std::int64_t tick,
                                               std::uint32_t n, std::int64_t counter_offset = 0) {
  wire::Mwa32tGeometry geometry;
  geometry.n_receivers = 255;
  geometry.n_instants = n;
  wire::Packet packet;
  packet.stream = receiver;
  packet.tick_raw = static_cast<std::uint64_t>(tick + counter_offset);
  packet.n_ticks = n;
  std::vector<std::byte> bytes(geometry.udp_packet_bytes());
  wire::encode(geometry, packet, pattern_payload(receiver, tick, n), bytes);
  return bytes;
}

}  // namespace ryle::test
