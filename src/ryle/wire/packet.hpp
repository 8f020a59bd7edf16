// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ryle::wire {

/// Why a datagram was refused; none = accepted. Every datagram ends in exactly one counter
/// (ingest.md 5.4).
enum class Reject : std::uint8_t {
  none,
  too_short,
  too_long,
  magic,
  version,
  length,
  field,
  foreign_stream,
  control,
  sender_invalid,
};
std::string_view name(Reject reject);

/// What a codec found in one packet. No pointers: payload_offset points into the datagram.
struct Packet {
  std::uint32_t stream = 0;     ///< dense source id (receiver, board, channel)
  std::uint64_t tick_raw = 0;   ///< counter as sent
  std::uint8_t tick_bits = 64;  ///< its width, for extension
  std::uint32_t n_ticks = 0;
  std::uint32_t channel = 0, n_channels = 0;
  std::uint32_t input = 0, n_inputs = 0;
  std::uint32_t payload_offset = 0;
  std::uint32_t payload_bytes = 0;
  std::uint32_t flags = 0;
};

}  // namespace ryle::wire
