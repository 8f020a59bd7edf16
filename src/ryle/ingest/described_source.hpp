// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ryle/core/frequency_axis.hpp"
#include "ryle/ingest/spectra_source.hpp"
#include "ryle/ingest/stream_cutter.hpp"
#include "ryle/wire/described.hpp"

namespace ryle {

/// Packets of a layout that is described (wire/described.hpp), as datagrams or one behind the other
/// in streams of bytes. A stream is one board in one block of channels, in the order of frequency;
/// a slot is one packet.
struct DescribedSourceConfig : ReceiverConfig {
  /// "udp://host:port", tcp:// and pipes, one or more; every endpoint takes every stream. Port 0:
  /// see endpoints().
  std::vector<std::string> endpoints;
  wire::PacketDescription packet;
  std::int64_t n_inputs = 0;       ///< of the array: boards = n_inputs / inputs of a packet
  std::string name = "described";  ///< of the format, for SourceInfo
  /// Spectra: channels taken, as the packets number them, and their centers, ascending.
  std::int64_t first_channel = 0;
  std::int64_t n_channels = 1;
  FrequencyAxis channels;
  bool descending = false;  ///< the frequency falls with the number of a channel
  /// Ticks: samples of an input, or spectra. The epoch is that of counter - base = 0, unless the
  /// counter counts from 1970, or time_source is arrival.
  SampleClock clock;
  TimeSource time_source = TimeSource::configured;

  /// Endpoints are streams of DADA or GUPPI RAW, cut into blocks, the inputs of one after those of
  /// the other; the first header tells the epoch.
  std::optional<StreamShape> stream;
  /// What a packet that was refused says, for the operator.
  std::function<std::string(std::span<const std::byte>)> rejected_text;

  std::int64_t chunk_ticks = 0;  ///< a multiple of described_chunk_alignment()
  int n_chunks = 8;              ///< fixed at start
  int window_chunks = 3;         ///< open at a time; n_chunks must be larger
  MemorySpace memory = MemorySpace::pinned;
};

/// Ticks that chunks are a multiple of: whole packets and whole blocks of spectra, or whole groups
/// of 64 samples.
std::int64_t described_chunk_alignment(const wire::PacketDescription& packet);
/// Which streams the codec takes. Throws ConfigError where packets do not divide the array or the
/// band, or do not tell the board or channel.
wire::DescribedGeometry described_geometry(const wire::PacketDescription& packet,
                                           std::int64_t n_inputs, std::int64_t first_channel,
                                           std::int64_t n_channels);
/// Bytes of chunks, and of the buffer of a stream per endpoint for streams, that a source will
/// allocate (for `ryle plan`, without opening anything). Throws ConfigError as the source would.
std::int64_t described_source_chunk_bytes(const DescribedSourceConfig& config);

/// Of the blocks that a source of spectra makes. Throws ConfigError as it would.
SpectraShape described_shape(const DescribedSourceConfig& config);

/// Whether the beamformer takes packets as they come (beamform::InputOrder::pairs): one channel of
/// all inputs each, [input / 2][128 spectra][2] ci4.
bool holds_pairs(const wire::PacketDescription& packet, std::int64_t n_inputs);
/// Bytes from one stream to the next in a chunk of spectra.
std::int64_t described_stream_bytes(const DescribedSourceConfig& config);
/// Presence of packets with one channel of all inputs, as beamform::Input takes it: a mask per
/// (channel, packet). Returns whether anything is absent.
/// @shape present [channel][packet][words_for_bits(n_inputs)], bit = input, resized
bool packet_presence(const DescribedSourceConfig& config, const Chunk& chunk,
                     std::vector<std::uint64_t>& present);

/// Time samples, [tick][input] as info().layout says. Absent samples are 0 and listed by input.
class DescribedSampleSource final : public ReceiverSource {
 public:
  /// Opens and binds. Throws ConfigError, IoError (port in use, ...) or OsLimitError (receive
  /// buffer; the message has the sysctl line).
  explicit DescribedSampleSource(const DescribedSourceConfig& config);
  SourceInfo info() const override;
  /// Of the chunks of one segment. @pre a chunk of it was taken and is not yet released
  SampleClock clock(std::int64_t segment) const;
};

class DescribedBlocks;

/// Spectra: chunks hold the payloads as they were sent, [stream][packet]; unpack() makes blocks.
/// Chunk::absent lists streams.
class DescribedSpectraSource final : public SpectraSource {
 public:
  explicit DescribedSpectraSource(const DescribedSourceConfig& config);
  ~DescribedSpectraSource() override;
  SourceInfo info() const override;
  SpectraShape shape() const override;
  FrequencyAxis channels() const override;
  SampleClock clock(std::int64_t segment) const override;
  void unpack(const Chunk& chunk, SpectraBlocks& spectra) const override;
  const DescribedSourceConfig& config() const;

 private:
  std::unique_ptr<DescribedBlocks> blocks_;
};

}  // namespace ryle
