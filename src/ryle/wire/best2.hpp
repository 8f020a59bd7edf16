// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "ryle/wire/packet.hpp"

// BEST-2 (Magro 2014; ingest.md 2.2): 4104 bytes, one channel, 32 antennas, 128 samples of 4+4 bits
// (real high).

namespace ryle::wire {

inline constexpr std::size_t kBest2PacketBytes = 4104;
inline constexpr std::uint32_t kBest2Channels = 1024;
inline constexpr std::uint32_t kBest2Samples = 128;
inline constexpr std::uint32_t kBest2Antennas = 32;

struct Best2Geometry {
  std::uint32_t first_channel =
      0;  ///< sky-ordered channels taken; stream = channel - first_channel
  std::uint32_t n_channels = kBest2Channels;
};

/// Header bits 63..26 block counter, 25..16 wire channel, 15..0 ignored (zero on write).
/// Packet: tick_raw = block counter (38 bits, one block = 128 samples = 6.5536 ms), n_ticks = 128,
/// channel = sky-ordered: c/2 for an even wire channel c, 512 + (c-1)/2 for an odd one.
Reject decode(const Best2Geometry& geometry, std::span<const std::byte> datagram,
              Packet& packet) noexcept;
std::size_t encode(const Best2Geometry& geometry, const Packet& packet,
                   std::span<const std::byte> payload, std::span<std::byte> out) noexcept;

/// Byte of antenna a, sample t in the payload: pairs of antennas are interleaved.
constexpr std::size_t best2_payload_index(std::size_t antenna, std::size_t sample) {
  return (antenna >> 1) * 256 + 2 * sample + (antenna & 1);
}

/// Antenna a of the payload (an ADC channel) -> element 4 row + column, rows south to north,
/// columns west to east (from the published antenna file; the published code never reads that map).
/// pair_swap: antennas 4a + j and 4a + (j ^ 2) of each 32-bit word are exchanged, as the weights of
/// the published kernel have them; only a planted wave or a calibrated source can tell.
constexpr std::uint32_t best2_element_of_antenna(std::uint32_t antenna, bool pair_swap = false) {
  const std::uint32_t adc = pair_swap ? antenna ^ 2u : antenna;
  const std::uint32_t column = adc / 8, k = adc % 8;
  const std::uint32_t row = k < 4 ? 2 * k : 2 * (k - 4) + 1;
  return 4 * row + column;
}
/// Sky frequency of a sky-ordered channel: the top of the band is channel 0. @unit Hz
constexpr double best2_center_hz(std::uint32_t channel) {
  return 418e6 - (channel + 0.5) * 19531.25;
}

}  // namespace ryle::wire
