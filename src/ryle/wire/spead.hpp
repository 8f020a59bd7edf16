// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "ryle/wire/packet.hpp"

// SPEAD-64-48 as MeerKAT's F-engines send it (ingest.md 2.5): heaps of [channel][spectrum][pol][re,
// im] i8, cut into packets that each carry every item needed. Ryle works per packet; no heap is
// ever assembled.

namespace ryle::wire {

struct SpeadGeometry {
  std::uint32_t n_streams = 64;   ///< F-engines: stream = feng_id
  std::uint32_t n_channels = 4;   ///< of one heap
  std::uint32_t n_spectra = 256;  ///< of one heap
  std::uint32_t max_channels = 32768;

  std::uint64_t heap_bytes() const noexcept { return std::uint64_t{n_channels} * n_spectra * 4; }
};

/// Packet: tick_raw = timestamp (0x1600, 48 bits, ADC samples since sync), channel = 0x4103, stream
/// = 0x4101, n_channels and n_ticks = those of the heap, input = 2 stream, flags = offset of this
/// payload in the heap (bytes). Descriptors (id 5) and stream control (id 6, "stop" among them) are
/// `control`: there is no in-band stop. Items 1..4, 0x1600, 0x4101 and 0x4103 must all be there as
/// immediates, else `field`.
Reject decode(const SpeadGeometry& geometry, std::span<const std::byte> datagram,
              Packet& packet) noexcept;
/// The heap counter, which the receiver does not use, is written as the timestamp.
std::size_t encode(const SpeadGeometry& geometry, const Packet& packet,
                   std::span<const std::byte> payload, std::span<std::byte> out) noexcept;

}  // namespace ryle::wire
