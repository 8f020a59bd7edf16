// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/ingest/spectra_source.hpp"

namespace ryle {

/// F-engine heaps of SPEAD live (wire/spead.hpp), as MeerKAT's katgpucbf sends them: one heap is
/// [channel][spectrum][polarization][re, im] of signed bytes of one F-engine, with the items
/// timestamp, feng_id and frequency (its first channel). Or heaps of a B-engine, bf_raw
/// [channel][spectrum][re, im] of one polarization of a beam: nothing in them tells which, so each
/// such stream has an endpoint of its own.
struct SpeadSourceConfig : ReceiverConfig {
  /// "udp://host:port" or multicast groups, one or more; every endpoint takes every heap, of beams
  /// those of its input. Port 0: see endpoints().
  std::vector<std::string> endpoints;
  bool beams = false;              ///< heaps of a B-engine
  std::int64_t n_fengines = 1;     ///< input n_pols() k + p is polarization p of k; beams: inputs
  std::int64_t first_channel = 0;  ///< number of the lowest channel as the heaps count
  std::int64_t n_channels = 0;     ///< received
  std::int64_t channels_per_heap = 0;  ///< 0 = n_channels; divides n_channels
  std::int64_t spectra_per_heap = 256;
  /// Of the timestamps; 2 x channels of an F-engine of real samples.
  std::int64_t ticks_per_spectrum = 0;
  double channel_zero_hz = 0;    ///< sky frequency of channel number 0 ...
  double channel_width_hz = 0;   ///< ... and from one to the next
  SampleClock clock{0, {1, 1}};  ///< instant of timestamp 0, and spectra per second

  std::int64_t chunk_spectra = 0;  ///< whole heaps and whole blocks of 64
  int n_chunks =
      8;  ///< fixed at start: memory = n_chunks * chunk_spectra * n_channels * inputs * 2
  int window_chunks = 3;  ///< open at a time; n_chunks must be larger
  MemorySpace memory = MemorySpace::pinned;

  std::int64_t heap_channels() const {
    return channels_per_heap > 0 ? channels_per_heap : n_channels;
  }
  /// Of the samples.
  std::int64_t heap_bytes() const { return heap_channels() * spectra_per_heap * spectrum_bytes(); }
  std::int64_t n_pols() const { return beams ? 1 : 2; }  ///< of a heap
  std::int64_t n_inputs() const { return n_pols() * n_fengines; }
  /// Of a channel, of all polarizations of a heap.
  std::int64_t spectrum_bytes() const { return 2 * n_pols(); }
  /// What is present or absent at once: eight bytes of a channel where heaps have whole numbers of
  /// them, else one spectrum, of all polarizations.
  std::int64_t cell_bytes() const {
    return spectra_per_heap * spectrum_bytes() % 8 == 0 ? 8 : spectrum_bytes();
  }
  std::int64_t cells_per_heap() const { return heap_bytes() / cell_bytes(); }
  std::int64_t n_streams() const { return n_fengines * (n_channels / heap_channels()); }
  SpectraShape shape() const;
  FrequencyAxis channels() const;
};

/// Receives F-engine heaps, packet by packet: what of a heap is lost is absent, the rest is used,
/// in any order of packets and items. Items are immediates or have addresses; descriptors in the
/// stream tell the numbers of items that have other ones than MeerKAT's, and what they say of the
/// size of a heap is compared with the configuration (IngestCounters::notes). There is no in-band
/// stop: another sender may go on.
///
/// @shape payload of a chunk [stream][heap][channel][spectrum][polarization][re, im], stream =
/// block of channels * n_fengines + feng_id. Chunk::first_tick and n_ticks are of spectra;
/// Chunk::absent lists cells of streams: AbsentSpan::input = stream, ticks = cells since cell 0 of
/// the heap of timestamp 0. A slot of the counters is a cell; lost_samples counts (channel, input,
/// spectrum) values.
class SpeadSource final : public SpectraSource {
 public:
  /// Opens and binds. Throws ConfigError, IoError (port in use, ...) or OsLimitError (receive
  /// buffer; the message has the sysctl line).
  explicit SpeadSource(const SpeadSourceConfig& config);

  SourceInfo info() const override;
  Chunk* next(std::chrono::milliseconds timeout) override;
  SpectraShape shape() const override;
  FrequencyAxis channels() const override;
  SampleClock clock(std::int64_t segment) const override;
  void unpack(const Chunk& chunk, SpectraBlocks& spectra) const override;

  const SpeadSourceConfig& config() const;
};

/// Bytes of chunks the source will allocate (for `ryle plan`, without opening anything). Throws
/// ConfigError as the source would.
std::int64_t spead_source_chunk_bytes(const SpeadSourceConfig& config);

/// Chunk of heaps to planar ci8 blocks and masks: see SpeadSource.
void unpack_spead(const SpeadSourceConfig& config, const Chunk& chunk, SpectraBlocks& spectra);

}  // namespace ryle
