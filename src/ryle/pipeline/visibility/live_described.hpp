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
#include "ryle/telescope/array.hpp"

/// Live packets of a layout that the observation file describes ([source.packet]).
namespace ryle::pipeline {

/// The receiver of the observation, of time samples or of spectra, whose counter has its 0 at
/// `start_tai_ns` (simulation_start_tai_ns()). Throws ConfigError for what is missing.
/// @pre is_described(config.source)
DescribedSourceConfig live_described_config(const ObservationConfig& config, std::int64_t n_inputs,
                                            std::int64_t start_tai_ns);
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

  /// Where the sources that are up stand at the start, for the sky picture.
  const std::vector<SourceMark>& marks() const { return marks_; }

 private:
  std::vector<SourceMark> marks_;
};

}  // namespace ryle::pipeline
