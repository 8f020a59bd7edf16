// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ryle/core/samples.hpp"
#include "ryle/wire/packet.hpp"

// MWA-32T (Wayth 2009; ingest.md 2.1): 64 inputs at 1.28 MHz from four receivers of 16 inputs each.
// One group = one sample instant of one receiver = 17 little-endian 16-bit words: marker, then 16
// data words. A data word has 5-bit two's complement real and imaginary parts (bits 4..0 and 9..5),
// bits 15..10 spare.

namespace ryle::wire {

inline constexpr std::uint32_t kMwa32tInputsPerReceiver = 16;
inline constexpr std::uint32_t kMwa32tWordsPerGroup = 17;
inline constexpr std::size_t kMwa32tGroupBytes = 34;
inline constexpr std::size_t kMwa32tPayloadBytesPerInstant =
    32;  ///< of one receiver, marker stripped
inline constexpr std::size_t kMwa32tUdpHeaderBytes = 16;
inline constexpr std::uint32_t kMwa32tUdpMagic = 0x4D573332;  // "MW32"
inline constexpr std::uint8_t kMwa32tUdpVersion = 1;
inline constexpr std::int64_t kMwa32tSampleRateHz = 1'280'000;

/// How word 0 of a group marks the instant. No public text fixes it, so it is configuration.
enum class MarkerMode : std::uint8_t {
  counter,   ///< low `bits` bits = value + instant * increment mod 2^bits
  constant,  ///< low `bits` bits = value
  ignore,
};

struct Mwa32tMarker {
  MarkerMode mode = MarkerMode::counter;
  int bits = 16;                ///< 1..16, the low bits of word 0
  std::uint32_t increment = 1;  ///< counter: per instant
  std::uint32_t value = 0;      ///< counter: at instant 0
};

struct Mwa32tGeometry {
  std::uint32_t n_receivers = 4;   ///< 1..255
  std::uint32_t n_instants = 256;  ///< of one UDP packet; 0 = any from 1 to 2046
  int re_shift = 0;                ///< lowest bit of the real part in a data word
  int im_shift = 5;
  Mwa32tMarker marker;  ///< group transports only

  std::size_t udp_packet_bytes() const noexcept {
    return kMwa32tUdpHeaderBytes + std::size_t{n_instants} * kMwa32tPayloadBytesPerInstant;
  }
};

/// The mwa32t-udp packet: BE u32 magic, u8 version, u8 receiver, u16 n, u64 first sample; then n x
/// 16 words LE. Packet: stream = receiver, tick_raw = first sample (64 bits), n_ticks = n, input =
/// 16 * receiver, n_inputs = 16, n_channels = 1. Every field of the header is in Packet.
Reject decode(const Mwa32tGeometry& geometry, std::span<const std::byte> datagram,
              Packet& packet) noexcept;
/// Writes header and payload; returns the bytes written, or 0 when `packet` does not fit the
/// geometry, `payload` is not n_ticks * 32 bytes, or `out` is too small.
std::size_t encode(const Mwa32tGeometry& geometry, const Packet& packet,
                   std::span<const std::byte> payload, std::span<std::byte> out) noexcept;

/// One data word. @pre parts in -16..15 (others are taken mod 32). Spare bits are zero on write,
/// ignored on read.
std::uint16_t pack_mwa32t_word(ci8 sample, int re_shift = 0, int im_shift = 5) noexcept;
ci8 unpack_mwa32t_word(std::uint16_t word, int re_shift = 0, int im_shift = 5) noexcept;

/// Word 0 of the group of `instant` (ignore mode: 0).
std::uint16_t mwa32t_marker_word(const Mwa32tMarker& marker, std::int64_t instant) noexcept;

struct MarkerCheck {
  bool valid =
      false;  ///< false: no instant has this marker (damaged, or the stream is out of step)
  std::int64_t instant = 0;  ///< counter: nearest to `expected`; other modes: `expected`
};
/// What word 0 says, where `expected` is the instant this group should have. A result with instant
/// > expected means instant - expected groups are missing; instant < expected a repeat. Ambiguous
/// by multiples of 2^bits / gcd(increment, 2^bits) instants (51.2 ms for a 16-bit counter at 1.28
/// MHz), which the caller settles by the other receivers.
MarkerCheck check_mwa32t_marker(const Mwa32tMarker& marker, std::uint16_t word,
                                std::int64_t expected) noexcept;

/// One group (34 bytes at `out`) from 16 data words already packed.
void encode_mwa32t_group(const Mwa32tMarker& marker, std::int64_t instant,
                         std::span<const std::uint16_t, kMwa32tInputsPerReceiver> words,
                         std::span<std::byte, kMwa32tGroupBytes> out) noexcept;

}  // namespace ryle::wire
