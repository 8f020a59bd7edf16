// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/run/graph.hpp"

#include <algorithm>

#include "ryle/core/error.hpp"
#include "ryle/ingest/described_source.hpp"
#include "ryle/ingest/fengine_source.hpp"
#include "ryle/ingest/spead_source.hpp"
#include "ryle/pipeline/image/voltage_imaging.hpp"
#include "ryle/pipeline/visibility/live_described.hpp"
#include "ryle/pipeline/visibility/live_spectra.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "ryle/pipeline/visibility/spectra_dumps.hpp"

namespace ryle::pipeline {
namespace {

// Described spectra of an array that the beams file describes.
SpectraInput beams_input(const ObservationConfig& config) {
  SpectraInput input;
  LiveBeams live = live_beams(config);
  const auto kept = KeptChunks::add(config, live.receiver.chunk_ticks, described_source_chunk_bytes,
                                    live.receiver);
  // Gains are told by line of the layout, which the packets of such an array reorder.
  const bool reordered = !std::is_sorted(live.input_line.begin(), live.input_line.end());
  if (reordered && !config.calibration.gains.empty() &&
      (wants_visibilities(config) || wants_images(config)))
    throw ConfigError(
        "calibration.gains: with source.antenna_map or pair_swap they reach beams alone; order the "
        "layout as the packets are, or make visibilities and images in a run without gains");
  input.array = live.file.array;
  input.shape = described_shape(live.receiver);
  input.metadata = described_spectra_metadata(live.receiver);
  input.kept = kept;
  input.pairs = live;
  input.open = [receiver = live.receiver] {
    return std::make_unique<DescribedSpectraSource>(receiver);
  };
  input.simulate = [&config, live] { return simulate_live_beams(config, live); };
  return input;
}

SpectraInput fengine_input(const ObservationConfig& config) {
  SpectraInput input;
  input.array = load_array(config, 0);
  FengineSourceConfig receiver = live_spectra_config(config, input.array);
  input.shape = fengine_layout(receiver).shape();
  input.metadata = live_spectra_metadata(receiver);
  input.kept =
      KeptChunks::add(config, receiver.chunk_spectra, fengine_source_chunk_bytes, receiver);
  input.open = [receiver] { return make_fengine_source(receiver); };
  input.simulate = [&config, array = input.array, receiver] {
    return std::make_unique<SpectraSimulation>(config, array, receiver);
  };
  return input;
}

SpectraInput spead_input(const ObservationConfig& config) {
  SpectraInput input;
  input.array = load_array(config, 0);
  SpeadSourceConfig receiver = live_spead_config(config, input.array);
  input.shape = receiver.shape();
  input.metadata = live_spead_metadata(receiver);
  input.kept = KeptChunks::add(config, receiver.chunk_spectra, spead_source_chunk_bytes, receiver);
  input.open = [receiver] { return std::make_unique<SpeadSource>(receiver); };
  input.simulate = [&config, array = input.array, receiver] {
    return std::make_unique<SpectraSimulation>(config, array, receiver);
  };
  return input;
}

SpectraInput described_input(const ObservationConfig& config) {
  SpectraInput input;
  input.array = load_array(config, 0);
  const std::int64_t start = simulation_start_tai_ns(config);
  DescribedSourceConfig receiver = live_described_config(config, input.array.n_inputs(), start);
  input.metadata = described_spectra_metadata(receiver);
  input.shape = described_shape(receiver);
  input.kept =
      KeptChunks::add(config, receiver.chunk_ticks, described_source_chunk_bytes, receiver);
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
         received.clock.rate_hz.value();
}

VoltageStream SpectraInput::voltages(const SpectraSource& source) const {
  VoltageStream stream = spectra_voltages(shape, received.frequency, received.clock, array.name);
  // The search tells times at the highest channel that it reads, which may be a finer one.
  stream.reference_hz = metadata.frequency.center_hz(metadata.frequency.n_channels - 1);
  if (pairs) stream.input_line = pairs->input_line;
  if (!pairs || !pairs->in_place) {
    stream.chunks.unpack = [&source](const Chunk& chunk, SpectraBlocks& blocks) {
      source.unpack(chunk, blocks);
    };
    return stream;
  }
  stream.chunks.form.content = VoltageForm::Content::packets;
  return stream;
}

SpectraInput spectra_input(const ObservationConfig& config) {
  SpectraInput input = is_live_beams(config.source)   ? beams_input(config)
                       : is_described(config.source)  ? described_input(config)
                       : is_live_spead(config.source) ? spead_input(config)
                                                      : fengine_input(config);
  input.metadata.max_gulp = input.shape.chunk_spectra;
  input.metadata.live = is_real_time(config);
  input.received = input.metadata;
  if (config.channelize.fine_channels > 0) {
    input.fine = fine_setup(config, input.shape, input.received);
    input.metadata = input.fine->metadata();
  }
  require_voltage_ring(config, input.metadata.frequency, input.metadata.clock.rate_hz.value());
  return input;
}

bool wants_beams(const ObservationConfig& config) { return !config.beams.file.empty(); }

bool makes_visibilities(const ObservationConfig& config) {
  const bool others = wants_images(config) || wants_beams(config);
  return wants_visibilities(config) || (config.output.pictures && !others);
}

void require_products(const ObservationConfig& config) {
  if (wants_images(config) || wants_visibilities(config) || wants_beams(config) ||
      keeps_voltages(config))
    return;
  if (is_live_samples(config.source) && makes_visibilities(config)) return;
  throw ConfigError(
      "the data would become nothing: set one of output.ms, output.uvfits and output.uvh5 for "
      "visibilities, image.cadence_s, the length of an image in seconds, or beams.file, the "
      "directions of beams, or voltages.ring_s, the last seconds kept for dumps");
}

StreamBeams beams_of(const ObservationConfig& config, const SpectraInput& input) {
  if (!input.beams_of_pairs()) {
    StreamBeams beams = stream_beams(config, input.array, input.metadata);
    if (input.pairs && !input.pairs->file.gains.empty()) {  // in the order of the packets
      beams.setup.file.gains.clear();
      for (const std::int64_t line : beams.inputs.order)
        beams.setup.file.gains.push_back(input.pairs->file.gains[line]);
    }
    return beams;
  }
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
                 const SpectraMetadata& metadata, const StreamBeams* beams, VoltageNode* voltages,
                 bool visibilities, const RunOptions& options) {
  Nodes nodes;
  if (wants_images(config)) {
    auto node = std::make_unique<SkyPath>(config, array, metadata, options.command_line);
    if (voltages != nullptr)
      node->set_on_event([voltages](const ImageEvent& event) {
        voltages->note_event(event.tai_ns, event.duration_s, event.snr);
      });
    node->set_on_image(options.hooks.on_image);
    nodes.all.push_back(std::move(node));
  }
  if (visibilities && wants_visibilities(config)) {
    auto node = std::make_unique<SpectraDumps>(config, array, metadata, options.command_line);
    node->set_on_dump(options.hooks.on_dump);
    nodes.visibilities = node.get();
    nodes.all.push_back(std::move(node));
  }
  if (beams != nullptr) {
    auto node = std::make_unique<BeamNode>(
        config, *beams, voltages != nullptr ? &voltages->ring() : nullptr, options);
    nodes.beams = node.get();
    nodes.all.push_back(std::move(node));
  }
  return nodes;
}

MemoryItems graph_memory(const ObservationConfig& config, const SpectraInput& input,
                         const std::optional<PlannedImages>& images) {
  MemoryItems items{{"ring of chunks", input.kept.receiver_bytes}};
  if (wants_images(config) || wants_visibilities(config) || !input.beams_of_pairs())
    items.emplace_back("blocks of one chunk", spectra_blocks_bytes(input.shape));
  if (input.fine) items.emplace_back("finer channels", input.fine->memory_bytes());
  if (images) append_image_memory(config, input.array.n_inputs(), input.metadata, *images, items);
  if (images)
    items.emplace_back("blocks cut at the end of an image",
                       cut_bytes(input.node_shape(), images->sky.n_spectra_per_image));
  if (wants_visibilities(config)) {
    const auto correlator = spectra_chain_setup(config, input.array.n_inputs(), input.metadata);
    items.emplace_back("blocks cut at the end of a dump",
                       cut_bytes(input.node_shape(), correlator.spectra_per_dump));
    items.emplace_back("correlator of the visibilities", correlator_bytes(correlator));
    items.push_back(
        waiting_dumps(config, input.array.n_inputs(), input.metadata.frequency.n_channels));
  }
  if (wants_beams(config)) {
    const auto beams = beams_memory(config, beams_of(config, input).setup);
    items.insert(items.end(), beams.begin(), beams.end());
  }
  if (keeps_voltages(config)) {
    items.emplace_back("ring of voltages", input.kept.voltages_bytes);
    if (!input.packets_in_place())
      items.emplace_back("blocks of a dump", spectra_blocks_bytes(input.shape));
  }
  return items;
}

}  // namespace ryle::pipeline
