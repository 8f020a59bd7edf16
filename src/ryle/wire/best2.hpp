// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/wire/described.hpp"

namespace ryle::wire {

/// Packets of the array BEST-2 (Magro 2014; ingest.md 2.2), what source.format = "best2" means
/// where the observation file has no [source.packet] of its own: 4104 bytes, one of 1024 channels,
/// 32 antennas in pairs, 128 spectra of 4+4 bits (real high). Header bits 63..26 are the block
/// counter, 25..16 the channel: even ones are the upper half of the band from the top, odd ones the
/// lower half. examples/packets/best2.toml is the same description.
PacketDescription best2_packet();

}  // namespace ryle::wire
