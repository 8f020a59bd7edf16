// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ryle/ingest/spectra_source.hpp"
#include "ryle/pipeline/beam/live_beams.hpp"
#include "ryle/pipeline/run/beam_node.hpp"
#include "ryle/pipeline/run/run_memory.hpp"
#include "ryle/pipeline/run/voltage_node.hpp"
#include "ryle/pipeline/visibility/fine_spectra.hpp"
#include "ryle/pipeline/visibility/simulation.hpp"
#include "ryle/pipeline/visibility/spectra_dumps.hpp"
#include "ryle/pipeline/visibility/spectra_metadata.hpp"
#include "ryle/pipeline/visibility/spectra_node.hpp"

/// The graph of a run: a source, and the nodes that read what comes of it. Every source feeds every
/// node that the observation asks for.
///
///     samples ─┬─ channelizer ─┐
///     spectra ─┼─(finer ones)──┴─ visibilities (correlator, writers)
///              │                ├─ images (imager, or correlator and imager; writers, trigger)
///              │                └─ beams (beamformer, filterbanks, search, fold)
///              └─ voltages (ring of the last seconds, dumps that beams, images and others ask for)
namespace ryle::pipeline {

/// A live source of spectra as the observation describes it; nothing is opened yet. A new format is
/// one more case of spectra_input().
struct SpectraInput {
  ArrayLayout array;               ///< inputs in the order of the samples
  SpectraShape shape;              ///< as received
  SpectraMetadata received;        ///< what is known of that
  std::optional<FineSetup> fine;   ///< channelize.fine_channels
  SpectraMetadata metadata;        ///< of what nodes read: `received`, or the finer channels
  KeptChunks kept;                 ///< between receiver and engines, and in the ring of voltages
  std::optional<LiveBeams> pairs;  ///< of an array that the beams file may describe
  std::function<std::unique_ptr<SpectraSource>()> open;
  std::function<std::unique_ptr<PacketSimulation>()> simulate;

  /// Of the blocks that nodes read.
  SpectraShape node_shape() const { return fine ? fine->shape() : shape; }
  /// Packets have the order that the beamformer takes.
  bool packets_in_place() const { return pairs && pairs->in_place; }
  /// The beamformer reads the packets as they come, not blocks.
  bool beams_of_pairs() const { return packets_in_place() && !fine; }
  double bits_per_s() const;
  /// What a ring of voltages keeps of it. @param source that open() gave
  VoltageStream voltages(const SpectraSource& source) const;
};
/// Throws ConfigError for what is missing.
SpectraInput spectra_input(const ObservationConfig& config);

/// Throws ConfigError when a run would make nothing.
void require_products(const ObservationConfig& config);
bool wants_beams(const ObservationConfig& config);
/// Visibilities are asked for, or nothing but pictures, which are made of them.
bool makes_visibilities(const ObservationConfig& config);

/// The beams of an input, as its node takes them. @pre wants_beams(config)
StreamBeams beams_of(const ObservationConfig& config, const SpectraInput& input);

/// The nodes of an observation.
struct Nodes {
  std::vector<std::unique_ptr<SpectraNode>> all;
  BeamNode* beams = nullptr;             ///< among them
  SpectraDumps* visibilities = nullptr;  ///< among them
  /// Some node reads planar blocks.
  bool reads_blocks() const;
};
/// Those that the observation asks for, the visibilities unless something else makes them.
/// @param beams null: none
/// @param voltages asked for dumps by candidates and events of images; null: none are kept
Nodes make_nodes(const ObservationConfig& config, const ArrayLayout& array,
                 const SpectraMetadata& metadata, const StreamBeams* beams, VoltageNode* voltages,
                 bool visibilities, const RunOptions& options);

/// What a live run of spectra allocates, item by item: `ryle plan` prints it, the run requires it
/// before anything is opened and reports the sum.
MemoryItems graph_memory(const ObservationConfig& config, const SpectraInput& input,
                         const std::optional<PlannedImages>& images);

}  // namespace ryle::pipeline
