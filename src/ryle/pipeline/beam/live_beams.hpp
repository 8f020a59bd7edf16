// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ryle/core/frequency_axis.hpp"
#include "ryle/ingest/described_source.hpp"
#include "ryle/pipeline/beam/beam_chain.hpp"
#include "ryle/pipeline/beam/beam_samples.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/visibility/simulation.hpp"
#include "ryle/pipeline/visibility/spectra_metadata.hpp"
#include "ryle/telescope/beams_file.hpp"

/// Live packets that become beams: what the observation file and its beams file say of them.
namespace ryle::pipeline {

/// The receiver of packets whose array is that of the beams file (source.format = "best2").
struct LiveBeams {
  BeamsFile file;           ///< inputs and gains in the order of the packets; perhaps no beams
  FrequencyAxis frequency;  ///< of the channels taken, ascending as in memory
  DescribedSourceConfig receiver;
  std::vector<std::int64_t> input_line;  ///< [input of a packet]: line of the layout
  bool in_place = false;                 ///< the beamformer takes packets as they come
};
/// Throws ConfigError for what is missing or does not fit.
LiveBeams live_beams(const ObservationConfig& config);

/// Another beams file for the same packets: inputs and gains in their order.
BeamsFile ordered_beams(const ObservationConfig& config, const std::string& path);
/// `file` with the gains of a CSV, whose inputs are lines of the layout.
BeamsFile with_gains(const LiveBeams& beams, BeamsFile file, const std::string& csv);

/// What the chain of beams needs of it.
BeamSetup beam_setup(const ObservationConfig& config, const LiveBeams& beams);

/// Beams of the spectra of any source.
struct StreamBeams {
  BeamSetup setup;
  BeamInputs inputs;  ///< of planar blocks; not used with packets in pairs of antennas
  /// From the first sample behind a spectrum to the instant its power is dated with: half of what
  /// a filter bank's window is longer than the interval of spectra.
  std::int64_t shift_ns = 0;
};
/// Throws ConfigError for what is missing or does not fit. The array of the observation replaces
/// that of the beams file, the band is that of the data.
StreamBeams stream_beams(const ObservationConfig& config, const ArrayLayout& array,
                         const SpectraMetadata& metadata);

/// The observation with the blocks of its search, chosen where [search] leaves them open: from the
/// memory of the devices, where they are here.
ObservationConfig with_search_blocks(const ObservationConfig& config, const BeamSetup& setup);
/// What the beams of a run and their consumers allocate, item by item (run_memory.hpp).
std::vector<std::pair<std::string, std::int64_t>> beams_memory(const ObservationConfig& config,
                                                               const BeamSetup& setup);
/// The same of the CUDA device with the most rows, beside the engines' own tables; empty when none
/// is to be used. Sizes of plans: no device is asked.
std::vector<std::pair<std::string, std::int64_t>> beams_device_memory(
    const ObservationConfig& config, const BeamSetup& setup);

/// Seconds of data per second that the beams and their search take on this machine with all its
/// workers: measured on random samples of the observation's own shape, the search on at most four
/// beams. Each is 0 where it is not measured: on devices, or without a search.
struct BeamMargins {
  double beams = 0, search = 0;
  double both() const;  ///< they share the workers
};
BeamMargins measure_beam_margins(const ObservationConfig& config, const BeamSetup& setup);

/// The [simulator] as such packets to source.listen.
std::unique_ptr<PacketSimulation> simulate_live_beams(const ObservationConfig& config,
                                                      const LiveBeams& beams,
                                                      const simulate::PacketSink& sink = {});

}  // namespace ryle::pipeline
