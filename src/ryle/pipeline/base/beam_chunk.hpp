// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ryle/core/absent.hpp"
#include "ryle/core/frequency_axis.hpp"
#include "ryle/core/time.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/telescope/geometry.hpp"

/// What the beamformer of a live run hands on: detected power of all beams, piece by piece. The
/// writers of filterbanks, the pictures and the search are its consumers.
namespace ryle::pipeline {

struct RunSummary;

/// One row of the power: a coherent beam, or the incoherent sum of a sub-array.
struct BeamInfo {
  std::string name;
  bool incoherent = false;
  /// Where it points at the start of the data: ICRS (of date 2000). Stationary and incoherent
  /// beams: where they looked then.
  SkyDirection position;
  double azimuth_rad = 0;  ///< at the start of the data, from north through east
  double elevation_rad = 0;
  std::int64_t n_antennas = 0;  ///< with a weight other than 0
};

/// What all chunks of a run have in common.
struct BeamStream {
  std::vector<BeamInfo> beams;
  FrequencyAxis frequency;  ///< centers ascend, channel 0 is the lowest
  /// Of power samples: sample n is the mean of the spectra [n T, (n+1) T), clock.tai_ns(n) the
  /// instant of the first of them. Of the first segment; each chunk has its own.
  SampleClock clock;
  std::int64_t integration = 1;  ///< T, spectra per sample
  std::int64_t max_samples = 0;  ///< longest chunk
  std::string telescope;
  TimeSource time_source = TimeSource::configured;

  std::int64_t n_beams() const { return static_cast<std::int64_t>(beams.size()); }
  double sample_interval_s() const { return 1 / clock.rate_hz.value(); }
};

/// The rows of a chunk that one device made, in its memory; strides as those of the chunk. Ready in
/// the order of the queue.
struct BeamPart {
  const float* values = nullptr;
  Queue queue;
  std::int64_t first_beam = 0, n_beams = 0;
};

/// Samples [first_sample, first_sample + n_samples) of all beams.
/// @shape values[beam * beam_stride + channel * channel_stride + time] f32, channels ascending in
/// frequency; the mean power of what was present, inputs of unit variance give 2 (one per part)
/// times that variance with weights normalised to `noise`
struct BeamChunk {
  const float* values = nullptr;    ///< nullptr when no consumer wants them on the host
  std::int64_t beam_stride = 0;     ///< floats
  std::int64_t channel_stride = 0;  ///< floats
  std::int64_t n_samples = 0;
  std::int64_t first_sample = 0;  ///< absolute; chunks of a segment follow on unless data was lost
  std::int64_t segment = 0;  ///< another one: the sender was started again, samples do not follow
  SampleClock clock;         ///< of this segment, see BeamStream::clock
  /// Samples (absolute) and channels (ascending) of which nothing arrived: their values are 0 in
  /// all beams, and no measurement. Sorted by channel, then time; maximal runs.
  std::span<const ChannelGap> absent;
  std::int64_t weights_tai_ns = 0;  ///< instant the beams were steered for; the same for all beams
  std::span<const BeamPart> parts;  ///< where beams are made on devices, one a share

  const float* row(std::int64_t beam, std::int64_t channel) const {
    return values + beam * beam_stride + channel * channel_stride;
  }
};

/// Voltages of the coherent beams in a stretch of spectra, before they are detected.
/// @shape values [beam][channel][spectrum][polarization] ci8
struct BeamVoltages {
  const std::byte* values = nullptr;
  std::int64_t beam_stride_bytes = 0, channel_stride_bytes = 0;
  Tick first = 0;      ///< spectrum since the epoch
  std::int64_t n = 0;  ///< spectra
  /// [beam][channel] codes of a voltage of 1, samples weighted and summed; null: not yet known, and
  /// all values are 0
  std::shared_ptr<const std::vector<float>> scale;
};

/// Memory of a consumer in which the next samples may be made, so that nothing is copied.
struct BeamDestination {
  std::int64_t n_samples = 0;                        ///< there is room for so many of them; 0: none
  float* values = nullptr;                           ///< on the host
  std::vector<float*> parts;                         ///< or of each share, in memory of its device
  std::int64_t beam_stride = 0, channel_stride = 0;  ///< floats
};

/// Takes chunks in order of time on the engine's thread. A consumer that needs longer than a chunk
/// lasts copies what it needs and has a thread of its own; it says in the summary what it dropped.
class BeamConsumer {
 public:
  virtual ~BeamConsumer() = default;
  /// The chunk's memory is the caller's and overwritten after this returns.
  virtual void take(const BeamChunk& chunk) = 0;
  /// Where the samples of `next` (no values yet) may be made; take() gets those that were then.
  virtual BeamDestination place(const BeamChunk& /*next*/) { return {}; }
  /// False: takes BeamChunk::parts where there are any, values may be nullptr.
  virtual bool wants_host_values() const { return true; }
  /// Whether take_voltages() is to be called.
  virtual bool wants_voltages() const { return false; }
  /// The memory is the caller's and overwritten after this returns.
  /// @param clock of spectra
  virtual void take_voltages(const BeamVoltages& /*voltages*/, const SampleClock& /*clock*/) {}
  /// No more chunks: publishes and adds products, warnings, errors to the summary. Once.
  virtual void finish(RunSummary& summary) = 0;
  /// Cannot go on (disk full, ...); the run ends when the observation asks for it.
  virtual bool failed() const { return false; }
  virtual std::int64_t memory_bytes() const { return 0; }
};

}  // namespace ryle::pipeline
