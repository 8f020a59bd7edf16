// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/run/graph.hpp"

#include <algorithm>

#include "ryle/core/error.hpp"
#include "ryle/ingest/best2_source.hpp"
#include "ryle/ingest/fengine_source.hpp"
#include "ryle/ingest/spead_source.hpp"
#include "ryle/pipeline/image/voltage_imaging.hpp"
#include "ryle/pipeline/visibility/live_described.hpp"
#include "ryle/pipeline/visibility/live_spectra.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "ryle/pipeline/visibility/spectra_dumps.hpp"

namespace ryle::pipeline {
namespace {

SpectraInput best2_input(const ObservationConfig& config) {
  SpectraInput input;
  const LiveBeams live = live_beams(config);
  // Gains are told by line of the layout, which the packets of such an array reorder.
  const bool reordered = !std::is_sorted(live.input_line.begin(), live.input_line.end());
  if (reordered && !config.calibration.gains.empty() &&
      (wants_visibilities(config) || wants_images(config)))
    throw ConfigError(
        "calibration.gains: with source.antenna_map or pair_swap they reach beams alone; order the "
        "layout as the packets are, or make visibilities and images in a run without gains");
  input.array = live.file.array;
  input.shape = {live.frequency.n_channels, input.array.n_inputs(), live.receiver.chunk_spectra,
                 SampleFormat::ci4, true};
  input.metadata.frequency = live.frequency;
  input.metadata.clock = live.receiver.clock;
  input.metadata.format = SampleFormat::ci4;
  input.metadata.four_bits = true;
  input.metadata.time_source = TimeSource::configured;
  input.ring_bytes = best2_source_chunk_bytes(live.receiver);
  input.pairs = live;
  input.open = [receiver = live.receiver] { return std::make_unique<Best2Source>(receiver); };
  input.simulate = [&config, live] { return std::make_unique<BeamSimulation>(config, live); };
  return input;
}

SpectraInput fengine_input(const ObservationConfig& config) {
  SpectraInput input;
  input.array = load_array(config, 0);
  const FengineSourceConfig receiver = live_spectra_config(config, input.array);
  input.shape = fengine_layout(receiver).shape();
  input.metadata = live_spectra_metadata(receiver);
  input.ring_bytes = fengine_source_chunk_bytes(receiver);
  input.open = [receiver] { return make_fengine_source(receiver); };
  input.simulate = [&config, array = input.array, receiver] {
    return std::make_unique<SpectraSimulation>(config, array, receiver);
  };
  return input;
}

SpectraInput spead_input(const ObservationConfig& config) {
  SpectraInput input;
  input.array = load_array(config, 0);
  const SpeadSourceConfig receiver = live_spead_config(config, input.array);
  input.shape = receiver.shape();
  input.metadata = live_spead_metadata(receiver);
  input.ring_bytes = spead_source_chunk_bytes(receiver);
  input.open = [receiver] { return std::make_unique<SpeadSource>(receiver); };
  return input;
}

SpectraInput described_input(const ObservationConfig& config) {
  SpectraInput input;
  input.array = load_array(config, 0);
  const std::int64_t start = simulation_start_tai_ns(config);
  const DescribedSourceConfig receiver =
      live_described_config(config, input.array.n_inputs(), start);
  input.metadata = described_spectra_metadata(receiver);
  input.shape = described_shape(receiver);
  input.ring_bytes = described_source_chunk_bytes(receiver);
  input.open = [receiver] { return std::make_unique<DescribedSpectraSource>(receiver); };
  input.simulate = [&config, array = input.array, start] {
    return std::make_unique<DescribedSimulation>(config, array, start);
  };
  return input;
}

// Gulps end where integrations do: what is left of a chunk is copied.
std::int64_t cut_bytes(SpectraShape shape, std::int64_t integration_spectra) {
  shape.chunk_spectra = std::min(shape.chunk_spectra, integration_spectra);
  return spectra_blocks_bytes(shape);
}

}  // namespace

double SpectraInput::bits_per_s() const {
  return static_cast<double>(bits_per_sample(shape.format) * shape.n_channels * shape.n_inputs) *
         metadata.clock.rate_hz.value();
}

SpectraInput spectra_input(const ObservationConfig& config) {
  SpectraInput input = is_live_beams(config.source)   ? best2_input(config)
                       : is_described(config.source)  ? described_input(config)
                       : is_live_spead(config.source) ? spead_input(config)
                                                      : fengine_input(config);
  if (config.source.kind == "simulator" && !input.simulate)
    throw UnsupportedError("the simulator sends no packets of source.format = \"" +
                           config.source.format +
                           "\"; receive them (source.kind = \"network\") "
                           "or replay a capture (\"pcap\")");
  input.metadata.max_gulp = input.shape.chunk_spectra;
  input.metadata.live = is_real_time(config);
  return input;
}

bool wants_beams(const ObservationConfig& config) { return !config.beams.file.empty(); }

bool makes_visibilities(const ObservationConfig& config) {
  const bool others = wants_images(config) || wants_beams(config);
  return wants_visibilities(config) || (config.output.pictures && !others);
}

void require_products(const ObservationConfig& config) {
  if (wants_images(config) || wants_visibilities(config) || wants_beams(config)) return;
  if (is_live_samples(config.source) && makes_visibilities(config)) return;
  throw ConfigError(
      "the data would become nothing: set one of output.ms, output.uvfits and output.uvh5 for "
      "visibilities, image.cadence_s, the length of an image in seconds, or beams.file, the "
      "directions of beams");
}

StreamBeams beams_of(const ObservationConfig& config, const SpectraInput& input) {
  if (!input.pairs) return stream_beams(config, input.array, input.metadata);
  StreamBeams beams;
  beams.setup = beam_setup(config, *input.pairs);
  return beams;
}

bool Nodes::reads_blocks() const {
  return std::any_of(all.begin(), all.end(), [](const auto& node) {
    const auto* beams = dynamic_cast<const BeamNode*>(node.get());
    return beams == nullptr || beams->reads_blocks();
  });
}

Nodes make_nodes(const ObservationConfig& config, const ArrayLayout& array,
                 const SpectraMetadata& metadata, const StreamBeams* beams, VoltageRing* ring,
                 bool visibilities, const RunOptions& options) {
  Nodes nodes;
  if (wants_images(config))
    nodes.all.push_back(std::make_unique<SkyPath>(config, array, metadata, options.command_line));
  if (visibilities && wants_visibilities(config)) {
    auto node = std::make_unique<SpectraDumps>(config, array, metadata, options.command_line);
    nodes.visibilities = node.get();
    nodes.all.push_back(std::move(node));
  }
  if (beams != nullptr) {
    auto node = std::make_unique<BeamNode>(config, *beams, ring, options);
    nodes.beams = node.get();
    nodes.all.push_back(std::move(node));
  }
  return nodes;
}

MemoryItems graph_memory(const ObservationConfig& config, const SpectraInput& input,
                         const std::optional<PlannedImages>& images) {
  std::int64_t ring_bytes = input.ring_bytes, voltages_bytes = 0;
  if (input.pairs) {
    Best2SourceConfig receiver = input.pairs->receiver;
    receiver.n_chunks -= static_cast<int>(voltage_ring_chunks(config, *input.pairs));
    ring_bytes = best2_source_chunk_bytes(receiver);
    voltages_bytes = input.ring_bytes - ring_bytes;
  }
  MemoryItems items{{"ring of chunks", ring_bytes}};
  if (wants_images(config) || wants_visibilities(config) || !input.pairs)
    items.emplace_back("blocks of one chunk", spectra_blocks_bytes(input.shape));
  if (images) append_image_memory(config, input.array.n_inputs(), input.metadata, *images, items);
  if (images)
    items.emplace_back("blocks cut at the end of an image",
                       cut_bytes(input.shape, images->sky.n_spectra_per_image));
  if (wants_visibilities(config)) {
    const auto correlator = spectra_chain_setup(config, input.array.n_inputs(), input.metadata);
    items.emplace_back("blocks cut at the end of a dump",
                       cut_bytes(input.shape, correlator.spectra_per_dump));
    items.emplace_back("correlator of the visibilities", correlator_bytes(correlator));
    items.push_back(waiting_dumps(config, input.array.n_inputs(), input.shape.n_channels));
  }
  if (wants_beams(config)) {
    const auto beams = beams_memory(config, beams_of(config, input).setup);
    items.insert(items.end(), beams.begin(), beams.end());
  }
  if (voltages_bytes > 0) items.emplace_back("ring of voltages", voltages_bytes);
  return items;
}

}  // namespace ryle::pipeline
