// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "ryle/wire/packet.hpp"

// CHIPS, the LWA-SV F-engine (input of Reddy 2023; ingest.md 2.4): one spectrum of 32 inputs, 4+4
// bits (real high).

namespace ryle::wire {

inline constexpr std::size_t kChipsHeaderBytes = 16;
inline constexpr std::uint32_t kChipsInputsPerBoard = 32;

struct ChipsGeometry {
  std::uint32_t n_boards = 16;   ///< 1..255
  std::uint32_t n_channels = 0;  ///< of one packet; 0 = any
};

/// u8 board (1-based), u8 gbe, u8 nchan, u8 nsubband, u8 subband, u8 nboard, BE u16 chan0, BE u64
/// seq (1-based); then [channel][input 32]. Packet: stream = board - 1, input = 32 stream, tick_raw
/// = seq - 1, channel = chan0, flags = gbe | nsubband << 8 | subband << 16 | nboard << 24 (not
/// trusted: deployed values run past nsubband).
Reject decode(const ChipsGeometry& geometry, std::span<const std::byte> datagram,
              Packet& packet) noexcept;
std::size_t encode(const ChipsGeometry& geometry, const Packet& packet,
                   std::span<const std::byte> payload, std::span<std::byte> out) noexcept;

}  // namespace ryle::wire
