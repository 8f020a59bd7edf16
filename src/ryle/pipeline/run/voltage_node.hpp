// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ryle/ingest/source.hpp"
#include "ryle/pipeline/base/command_result.hpp"
#include "ryle/pipeline/beam/voltage_ring.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/run/trigger_socket.hpp"

namespace ryle::pipeline {

/// The chunks of a live source, and the channels that are made of them or that they hold.
struct VoltageStream {
  VoltageChunks chunks;
  FrequencyAxis frequency;               ///< of spectra, or of the channels made of samples
  double reference_hz = 0;               ///< as in VoltageShape
  SampleClock clock;                     ///< of ticks: spectra, or samples
  std::vector<std::int64_t> input_line;  ///< [input of a packet]: line of the layout
  std::string telescope;
};
/// Spectra of `shape` as blocks of them tell; unpack is still to be set.
VoltageStream spectra_voltages(const SpectraShape& shape, const FrequencyAxis& frequency,
                               const SampleClock& clock, const std::string& telescope);

bool keeps_voltages(const ObservationConfig& config);
/// Chunks that a ring of voltages.ring_s keeps; 0 = there is none.
std::int64_t voltage_ring_chunks(const ObservationConfig& config, double ticks_per_s,
                                 std::int64_t chunk_ticks);
/// Throws ConfigError where nobody asks the ring for dumps, or where what the search or the trigger
/// of images finds has left it by then.
/// @param rate_hz spectra a second behind beams and images
void require_voltage_ring(const ObservationConfig& config, const FrequencyAxis& frequency,
                          double rate_hz);
VoltageRingConfig voltage_ring_config(const ObservationConfig& config, const VoltageStream& stream,
                                      const std::string& command_line);

/// Gives a receiver the chunks that a ring of voltages keeps: what it allocates without them, and
/// what they take.
struct KeptChunks {
  std::int64_t receiver_bytes = 0, voltages_bytes = 0;

  template <class Receiver>
  static KeptChunks add(const ObservationConfig& config, std::int64_t chunk_ticks,
                        std::int64_t (*chunk_bytes)(const Receiver&), Receiver& receiver) {
    KeptChunks kept;
    kept.receiver_bytes = chunk_bytes(receiver);
    receiver.n_chunks +=
        static_cast<int>(voltage_ring_chunks(config, receiver.clock.rate_hz.value(), chunk_ticks));
    kept.voltages_bytes = chunk_bytes(receiver) - kept.receiver_bytes;
    return kept;
  }
};

/// The last seconds of what a live source received, and dumps of them: the node of the graph that
/// reads chunks as they came. Who asks: candidates of the search, events of images, `ryle trigger`
/// and others over voltages.socket, an operator (`ryle command RUN dump`).
/// - Thread: the engines' thread calls take(), dump() and finish(); any thread the others.
/// - Ends with finish(), after all nodes that may ask have ended.
class VoltageNode {
 public:
  /// @param source gets its chunks back; must outlive finish()
  VoltageNode(const ObservationConfig& config, const VoltageRingConfig& ring, ChunkSource& source);

  VoltageRing& ring() { return ring_; }
  /// Keeps the chunk and gives the oldest back.
  void take(Chunk* chunk, const SampleClock& clock);
  /// An event of images, `duration_s` about its middle, asks for its voltages where the S/N of a
  /// plane is voltages.trigger_snr or more, of either sign; NaN = the plane was not made.
  void note_event(std::int64_t tai_ns, double duration_s, std::span<const double> snr);
  /// The last seconds, or with 0 all that the ring holds, as far as data have come.
  CommandResult dump(double seconds, std::int64_t data_tai_ns);
  /// Nobody can ask any more; what was asked for is written.
  void finish(RunSummary& summary);

 private:
  const ObservationConfig& config_;
  double margin_s_, ring_s_;
  ChunkSource& source_;
  VoltageRing ring_;
  std::unique_ptr<TriggerSocket> socket_;
  std::vector<Chunk*> freed_;
  std::int64_t segment_ = -1;
  std::int64_t begin_tai_ns_ = 0;  ///< of the segment
};

}  // namespace ryle::pipeline
