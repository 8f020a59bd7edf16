// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "ryle/wire/packet.hpp"

// Long Wavelength Array frames (ingest.md 2.3): TBF and TBX spectra, TBN time samples. Big endian;
// time tags count 196 MHz ticks since 1970-01-01 UTC. Samples of TBF and TBX are 4+4 bits, real in
// the high nibble.

namespace ryle::wire {

inline constexpr std::uint32_t kLwaMagic = 0xDEC0DE5C;
inline constexpr std::int64_t kLwaTicksPerSecond = 196'000'000;
inline constexpr std::size_t kTbfHeaderBytes = 24;
inline constexpr std::size_t kTbxHeaderBytes = 28;
inline constexpr std::size_t kTbnFrameBytes = 1048;
inline constexpr std::uint32_t kTbfChannelsPerFrame = 12;
inline constexpr std::uint32_t kTbnSamplesPerFrame = 512;
/// Channels above this cannot exist: 98 MHz (Nyquist) / 23.9 kHz = 4096, and 102.4 MHz / 25 kHz =
/// 4096.
inline constexpr std::uint32_t kLwaMaxChannels = 4096;

/// Spectra of all stands, a few channels a frame. Zero counts accept any (files); a receiver sets
/// them all.
struct TbfGeometry {
  std::uint32_t n_stands = 256;
  std::uint32_t first_channel = 0;  ///< stream = (channel - first_channel) / 12 when n_streams > 0
  std::uint32_t n_streams = 0;      ///< frames per spectrum; 0: any channel, stream = 0
  bool write_second = false;  ///< encode the Unix second (LWA-SV did, LWA-NA leaves 0); never read
};
struct TbxGeometry {
  std::uint32_t n_stands = 64;
  std::uint32_t n_channels = 12;
  std::uint32_t first_channel = 0;
  std::uint32_t n_streams = 0;
};
struct TbnGeometry {
  std::uint32_t n_inputs = 520;  ///< 1..16384; input = 2 (stand - 1) + pol
};

/// Packet: channel, n_channels = 12, n_inputs = 2 stands, tick_raw = time tag, flags = id << 24 |
/// frame count (ids 1 and 5 are seen). The field for stands holds 0 for 256.
Reject decode(const TbfGeometry& geometry, std::span<const std::byte> frame,
              Packet& packet) noexcept;
std::size_t encode(const TbfGeometry& geometry, const Packet& packet,
                   std::span<const std::byte> payload, std::span<std::byte> out) noexcept;

/// As TBF, id 8, with the number of channels in the header.
Reject decode(const TbxGeometry& geometry, std::span<const std::byte> frame,
              Packet& packet) noexcept;
std::size_t encode(const TbxGeometry& geometry, const Packet& packet,
                   std::span<const std::byte> payload, std::span<std::byte> out) noexcept;

/// 512 complex samples (i8 re, i8 im) of one input. Packet: stream = input, n_ticks = 512 samples
/// (tick_raw is in 196 MHz ticks), channel = tuning word w (frequency = w * 196e6 / 2^32 Hz), flags
/// = gain << 24 | frame count.
Reject decode(const TbnGeometry& geometry, std::span<const std::byte> frame,
              Packet& packet) noexcept;
std::size_t encode(const TbnGeometry& geometry, const Packet& packet,
                   std::span<const std::byte> payload, std::span<std::byte> out) noexcept;

/// What a frame is, from its first bytes.
enum class LwaKind : std::uint8_t { none, tbf, tbx, tbn, tbw, cor, drx };
struct LwaFrame {
  LwaKind kind = LwaKind::none;
  std::size_t bytes = 0;  ///< whole frame, from the header (for files); at most 2 MiB + 28
};
/// @pre none: anything shorter than 28 bytes, or without the magic, is `none`.
LwaFrame identify_lwa_frame(std::span<const std::byte> start) noexcept;

}  // namespace ryle::wire
