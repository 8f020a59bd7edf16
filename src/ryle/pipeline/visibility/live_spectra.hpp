// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ryle/ingest/fengine_source.hpp"
#include "ryle/ingest/spead_source.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/visibility/simulation.hpp"
#include "ryle/pipeline/visibility/spectra_metadata.hpp"
#include "ryle/simulate/fengine_sender.hpp"
#include "ryle/telescope/array.hpp"

/// Live packets of an F-engine: what the observation file says of them.
namespace ryle::pipeline {

/// What receivers of every format are told.
ReceiverConfig receiver_config(const ObservationConfig& config);
/// The receiver of the observation. Throws ConfigError for what is missing.
FengineSourceConfig live_spectra_config(const ObservationConfig& config, const ArrayLayout& array);

/// The receiver of an observation of SPEAD heaps. Throws ConfigError for what is missing.
SpeadSourceConfig live_spead_config(const ObservationConfig& config, const ArrayLayout& array);

/// Centers of its channels.
FrequencyAxis fengine_channels(const FengineSourceConfig& receiver);
/// What the paths must know of its spectra.
SpectraMetadata live_spectra_metadata(const FengineSourceConfig& receiver);

/// The same of SPEAD heaps.
SpectraMetadata live_spead_metadata(const SpeadSourceConfig& receiver);

/// Seconds of data per second of the clock on the wall that are expected: simulator.speed, or 1.
double expected_speed(const ObservationConfig& config);

/// The [simulator] of an F-engine: a sky over the array, sent as its packets to source.listen.
/// Writes simulator.duration_s of the frames of these boards (write_fengine_file).
SimulatedFile write_simulated_spectra(const ObservationConfig& config, const std::string& path);

class SpectraSimulation final : public PacketSimulation {
 public:
  SpectraSimulation(const ObservationConfig& config, const ArrayLayout& array,
                    const FengineSourceConfig& receiver, const simulate::PacketSink& sink = {});
  /// Of heaps of SPEAD.
  SpectraSimulation(const ObservationConfig& config, const ArrayLayout& array,
                    const SpeadSourceConfig& receiver, const simulate::PacketSink& sink = {});

 private:
  template <class Sender, class SenderConfig>
  void begin(const ObservationConfig& config, const ArrayLayout& array, const SampleClock& clock,
             const FrequencyAxis& channels, SenderConfig sender, const simulate::PacketSink& sink);
};

}  // namespace ryle::pipeline
