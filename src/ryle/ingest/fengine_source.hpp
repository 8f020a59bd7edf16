// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/core/frequency_axis.hpp"
#include "ryle/ingest/fengine_blocks.hpp"
#include "ryle/ingest/spectra_source.hpp"

namespace ryle {

enum class FengineFormat : std::uint8_t {
  chips,  ///< LWA-SV boards of 32 inputs, one spectrum of one board a packet (wire/chips.hpp)
  tbf,    ///< 12 channels of all stands a frame (wire/lwa.hpp)
  tbx,    ///< any number of channels of all stands a frame
};
std::string_view name(FengineFormat format);
/// Inverse of name(); throws UnsupportedError that lists the known names.
FengineFormat fengine_format(std::string_view name);

/// Channelized voltages live, over UDP: every packet is one spectrum of some channels and some
/// inputs. The band is cut into blocks of `channels_per_packet`; (block, board) is a *stream*.
struct FengineSourceConfig : ReceiverConfig {
  FengineFormat format = FengineFormat::chips;
  /// "udp://host:port", one or more; every endpoint takes every stream. Port 0: see endpoints().
  std::vector<std::string> endpoints;
  std::int64_t n_boards = 16;            ///< CHIPS: inputs = 32 n_boards
  std::int64_t n_stands = 256;           ///< TBF, TBX: inputs = 2 n_stands
  std::int64_t first_channel = 0;        ///< number of the lowest channel as the packets count
  std::int64_t n_channels = 132;         ///< of the whole band
  std::int64_t channels_per_packet = 0;  ///< 0 = n_channels (TBF: always 12); divides n_channels
  /// Sky frequency of channel number c: c * channel_width_hz (LWA: 25 kHz, or 196 MHz / 8192).
  double channel_width_hz = 25'000;
  /// CHIPS: time of spectrum 0 (its sequence number is 1) and rate. TBF, TBX: only the rate counts;
  /// their time tags are absolute. CHIPS with TimeSource::arrival: spectrum 0 is so long before the
  /// start of a segment as its sequence number says.
  SampleClock clock{0, {25'000, 1}};
  TimeSource time_source = TimeSource::configured;

  std::int64_t chunk_spectra = 256;  ///< multiple of 128: whole blocks
  int n_chunks = 16;  ///< fixed at start: memory = n_chunks * chunk_spectra * n_channels * n_inputs
  int window_chunks = 4;  ///< open at a time; n_chunks must be larger
  MemorySpace memory = MemorySpace::pinned;
};

class FengineReceiver;

/// Receives F-engine packets. next() gives chunks of packets as they were sent (stream by stream,
/// absent ones 0).
///
/// Chunk::absent lists streams, not inputs: AbsentSpan::input = stream; unpack() knows. A slot of
/// the counters is one spectrum of one stream; lost_samples counts (channel, input) values.
class FengineSource final : public SpectraSource {
 public:
  /// Opens and binds. Throws ConfigError, IoError (port in use, ...) or OsLimitError (receive
  /// buffer; the message has the sysctl line).
  explicit FengineSource(const FengineSourceConfig& config);

  /// clock counts spectra. TBF, TBX: its epoch is known once a chunk came.
  SourceInfo info() const override;
  SampleClock clock(std::int64_t segment) const override;
  const FengineLayout& layout() const;
  SpectraShape shape() const override { return layout().shape(); }
  FrequencyAxis channels() const override;
  void unpack(const Chunk& chunk, SpectraBlocks& spectra) const override;

 private:
  const FengineReceiver& fengine() const;
};

std::unique_ptr<FengineSource> make_fengine_source(const FengineSourceConfig& config);

/// The layout make_fengine_source() will use; throws ConfigError as it would.
FengineLayout fengine_layout(const FengineSourceConfig& config);
/// Bytes of chunks the source will allocate (for `ryle plan`, without opening anything).
std::int64_t fengine_source_chunk_bytes(const FengineSourceConfig& config);

}  // namespace ryle
