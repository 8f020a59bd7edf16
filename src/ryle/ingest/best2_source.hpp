// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ryle/ingest/spectra_source.hpp"
#include "ryle/wire/best2.hpp"

namespace ryle {

/// Packets of BEST-2 live (wire/best2.hpp): each is one channel, 128 spectra of 32 antennas. A
/// channel is a *stream*, a packet is its slot.
struct Best2SourceConfig : ReceiverConfig {
  /// "udp://host:port", one or more; every endpoint takes every channel. Port 0: see endpoints().
  std::vector<std::string> endpoints;
  /// Channels taken, as they are ordered in the sky: 0 is the top of a descending band. Packets of
  /// others are foreign streams.
  std::int64_t first_channel = 0;
  std::int64_t n_channels = wire::kBest2Channels;
  /// The band descends: channels are stored in reverse, so that frequencies in memory ascend.
  bool descending = true;
  /// Instant of spectrum 0 of the counter, and spectra per second: 20 MHz / 1024.
  SampleClock clock{0, {78'125, 4}};

  std::int64_t chunk_spectra = 1024;  ///< multiple of 128: whole packets
  int n_chunks = 8;  ///< fixed at start: memory = n_chunks * chunk_spectra * n_channels * 32 bytes
  int window_chunks = 3;  ///< open at a time; n_chunks must be larger
  MemorySpace memory = MemorySpace::pinned;
  /// Centers of the channels taken, ascending as in memory; empty: those of the array's band.
  FrequencyAxis frequency;
};

/// Receives BEST-2 packets.
/// @shape payload of a chunk [channel][block][pair 16][spectrum 128][2] ci4, blocks dense in
/// chunk_spectra: what beamform::InputOrder::pairs takes as it is. Absent packets are 0.
/// Chunk::absent lists channels in the order of memory: AbsentSpan::input = channel. A slot of the
/// counters is a packet; lost_samples counts (spectrum, antenna) values.
class Best2Source final : public SpectraSource {
 public:
  /// Opens and binds. Throws ConfigError, IoError (port in use, ...) or OsLimitError (receive
  /// buffer; the message has the sysctl line).
  explicit Best2Source(const Best2SourceConfig& config);

  SourceInfo info() const override;
  SpectraShape shape() const override;
  FrequencyAxis channels() const override;
  SampleClock clock(std::int64_t segment) const override;
  void unpack(const Chunk& chunk, SpectraBlocks& spectra) const override;

  const Best2SourceConfig& config() const;
  /// Bytes from one channel to the next in a chunk.
  std::int64_t channel_stride_bytes() const;
};

/// Bytes of chunks the source will allocate (for `ryle plan`, without opening anything). Throws
/// ConfigError as the source would.
std::int64_t best2_source_chunk_bytes(const Best2SourceConfig& config);

/// Presence in the form beamform::Input takes: a word per (channel, packet), bit = antenna.
/// Returns whether anything is absent.
/// @shape present [channel][n_ticks / 128], resized
bool best2_presence(const Best2SourceConfig& config, const Chunk& chunk,
                    std::vector<std::uint64_t>& present);

}  // namespace ryle
