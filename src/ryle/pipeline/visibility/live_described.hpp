// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/ingest/described_source.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "ryle/pipeline/visibility/simulation.hpp"
#include "ryle/pipeline/visibility/spectra_metadata.hpp"
#include "ryle/simulate/described_sender.hpp"
#include "ryle/telescope/array.hpp"

/// Live packets of a layout that the observation file describes ([source.packet]).
namespace ryle::pipeline {

/// Channels that are received.
struct DescribedBand {
  FrequencyAxis channels;   ///< centers ascend
  bool descending = false;  ///< the numbers of the packets fall with frequency
};

/// The receiver of the observation, of time samples or of spectra, whose counter has its 0 at
/// `start_tai_ns` (simulation_start_tai_ns()). Throws ConfigError for what is missing.
/// @param band of source.first_channel and those behind it; nullptr: as the keys of [source] say
/// @pre is_described(config.source)
DescribedSourceConfig live_described_config(const ObservationConfig& config, std::int64_t n_inputs,
                                            std::int64_t start_tai_ns,
                                            const DescribedBand* band = nullptr);
/// What the channelizer must know of described time samples; their inputs are those of the array.
SampleMetadata described_sample_metadata(const ObservationConfig& config);
/// What the paths must know of described spectra.
SpectraMetadata described_spectra_metadata(const DescribedSourceConfig& receiver);

/// The [simulator] of described packets: a sky over the array, sent to source.listen.
class DescribedSimulation final : public PacketSimulation {
 public:
  /// Draws the samples or spectra (seconds) and packs the packets.
  DescribedSimulation(const ObservationConfig& config, const ArrayLayout& array,
                      std::int64_t start_tai_ns, const simulate::PacketSink& sink = {});
  /// The same for a receiver and an Earth that are not those of [source] and [telescope].
  DescribedSimulation(const ObservationConfig& config, const ArrayLayout& array,
                      const DescribedSourceConfig& receiver, std::int64_t start_tai_ns,
                      const EarthOrientation& earth, const simulate::PacketSink& sink = {});

  std::int64_t memory_bytes() const { return sender_->memory_bytes(); }

  /// Where the sources that are up stand at the start, for the sky picture.
  const std::vector<SourceMark>& marks() const { return marks_; }

 private:
  void send_spectra(const ObservationConfig& config, const ArrayLayout& array,
                    const simulate::Scene& scene, const simulate::SpectraConfig& spectra,
                    const simulate::DescribedSenderConfig& sender);
  void mark(const ObservationConfig& config, const std::vector<Vector3>& sources_enu);

  std::vector<SourceMark> marks_;
};

}  // namespace ryle::pipeline
