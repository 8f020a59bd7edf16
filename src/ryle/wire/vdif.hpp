// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ryle/wire/packet.hpp"

// VDIF frames (ingest.md 2.6): 8 (legacy 4) little-endian words, then samples, first one in the
// lowest bits: [time][channel][re, im], offset binary.

namespace ryle::wire {

inline constexpr std::size_t kVdifHeaderBytes = 32;
inline constexpr std::size_t kVdifLegacyHeaderBytes = 16;

struct VdifHeader {
  bool invalid = false;
  bool legacy = false;
  std::uint32_t seconds = 0;  ///< SI seconds from the reference epoch, leap seconds included
  std::uint32_t reference_epoch = 0;  ///< half-years from 2000-01-01 UTC, 0..63
  std::uint32_t frame = 0;            ///< in the second
  std::uint32_t version = 0;
  std::uint32_t n_channels = 1;
  std::uint32_t frame_bytes = 0;  ///< header included
  bool complex = false;
  std::uint32_t bits = 0;  ///< per elementary sample (real or imaginary part), 1..32
  std::uint32_t thread = 0;
  std::uint32_t station = 0;
  std::uint32_t edv = 0;
  std::uint64_t sample_rate_hz =
      0;  ///< complete samples a second and channel, EDV 1 and 3 only; 0 = not in the header
  std::uint32_t samples_per_frame =
      0;  ///< complete samples per channel; 0 = the payload is no whole number of them

  std::size_t header_bytes() const noexcept {
    return legacy ? kVdifLegacyHeaderBytes : kVdifHeaderBytes;
  }
};

/// Fields of a header. None of the fields is judged but the frame length, which must hold the
/// header and a payload.
/// @return none, too_short (less than a header) or length.
Reject parse_vdif_header(std::span<const std::byte> start, VdifHeader& header) noexcept;

struct VdifGeometry {
  std::uint32_t frame_bytes = 0;        ///< 0 = any
  std::uint32_t n_streams = 1024;       ///< threads; stream = thread
  std::uint32_t frames_per_second = 0;  ///< when known: tick_raw = seconds * frames_per_second +
                                        ///< frame, else seconds << 24 | frame with tick_bits = 54
  /// Words 4..7 (EDV and its fields) as encode() writes them.
  std::array<std::uint32_t, 4> extended{};
};

/// Packet::flags: 5..0 reference epoch, 6 legacy, 7 complex, 12..8 bits - 1, 15..13 version, 31..16
/// station. n_ticks = samples per frame. A frame marked invalid is `sender_invalid`; an unknown EDV
/// is never refused.
Reject decode(const VdifGeometry& geometry, std::span<const std::byte> frame,
              Packet& packet) noexcept;
std::size_t encode(const VdifGeometry& geometry, const Packet& packet,
                   std::span<const std::byte> payload, std::span<std::byte> out) noexcept;

}  // namespace ryle::wire
