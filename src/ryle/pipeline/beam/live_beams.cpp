// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/beam/live_beams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/pipeline/visibility/live_described.hpp"
#include "ryle/pipeline/visibility/live_spectra.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "ryle/telescope/gains.hpp"

namespace ryle::pipeline {
namespace {

void check_beams(const BeamsConfig& b) {
  if ((b.integration_spectra & (b.integration_spectra - 1)) != 0)
    throw ConfigError(fmt::format(
        "beams.integration_spectra = {} is no power of two: windows would straddle packets",
        b.integration_spectra));
  if (b.bits != 8 && b.bits != 32)
    throw ConfigError(
        fmt::format("beams.bits = {}: filterbanks of beams have 8 or 32 bits", b.bits));
}

// What the packets of source.packet count: channels of the band, 0 where they do not tell.
std::int64_t numbered_channels(const SourceConfig& source) {
  const wire::HeaderField* field = source.packet->field(wire::FieldMeaning::first_channel);
  return field != nullptr ? field->count * field->step : 0;
}

// The array of the packets: that of the beams file, or of [telescope] where there are no beams.
BeamsFile array_of_packets(const ObservationConfig& config) {
  const auto& t = config.telescope;
  const auto& s = config.source;
  if (config.beams.file.empty()) {
    if (t.layout.empty() && t.station.empty())
      throw ConfigError(
          "beams.file is empty: name the beams file (TOML with the array, its band and the beams; "
          "`ryle import best2` makes one), or the array alone in telescope.layout");
    BeamsFile file;
    file.array = load_array(config, 0);
    file.earth_orientation.dut1_s = t.dut1_s;
    const double width_hz = s.channel_width_hz > 0 ? s.channel_width_hz : s.sample_rate_hz.value();
    const std::int64_t numbered = numbered_channels(s);
    file.n_channels = numbered > 0 ? numbered : s.first_channel + s.n_channels;
    file.first_center_hz = s.channel_zero_mhz * 1e6;
    file.channel_step_hz = s.inverted_band ? -width_hz : width_hz;
    return file;
  }
  check_beams(config.beams);
  if (!t.layout.empty() || !t.station.empty())
    throw ConfigError(
        "telescope.layout is given twice: with beams.file the array is that of the beams file");
  if (is_received(s) && s.start_utc == "now")
    throw ConfigError(
        "source.start_utc is needed: the UTC of spectrum 0 of the packets' counter; beams are "
        "pointed by it");
  return load_beams(resolve_path(config, config.beams.file));
}

// Inputs and gains from the order of the layout to that of the packets.
std::vector<std::int64_t> order_antennas(const SourceConfig& source, BeamsFile& file) {
  auto& inputs = file.array.inputs;
  const std::int64_t n = file.array.n_inputs();
  std::vector<std::int64_t> map = source.antenna_map;
  if (map.empty()) {
    for (std::int64_t a = 0; a < n; ++a) map.push_back(a);
  }
  std::vector<std::int64_t> sorted = map;
  std::sort(sorted.begin(), sorted.end());
  for (std::int64_t a = 0; a < n; ++a) {
    if (static_cast<std::int64_t>(map.size()) != n || sorted[a] != a)
      throw ConfigError(fmt::format(
          "source.antenna_map has {} numbers; each of 0 to {} is wanted once", map.size(), n - 1));
  }
  if (source.pair_swap && n % 4 != 0)
    throw ConfigError(fmt::format(
        "source.pair_swap exchanges antennas in groups of four, {} has {}", file.array.name, n));
  const auto from_inputs = inputs;
  const auto from_gains = file.gains;
  std::vector<std::int64_t> lines;
  for (std::int64_t a = 0; a < n; ++a) {
    const std::int64_t wired = source.pair_swap ? a ^ 2 : a;
    lines.push_back(map[wired]);
    const auto line = static_cast<std::size_t>(lines.back());
    inputs[a] = from_inputs[line];
    if (!from_gains.empty()) file.gains[a] = from_gains[line];
  }
  return lines;
}

DescribedBand channels_taken(const SourceConfig& source, const BeamsFile& file) {
  const std::int64_t n =
      source.n_channels > 0 ? source.n_channels : file.n_channels - source.first_channel;
  const std::int64_t numbered = numbered_channels(source);
  if (file.beams.empty() && source.n_channels == 0 && numbered == 0)
    throw ConfigError(
        "source.n_channels = 0: neither the packets nor a beams file tell how many channels there "
        "are: set source.n_channels");
  if ((numbered > 0 && file.n_channels != numbered) || n < 1 ||
      source.first_channel + n > file.n_channels)
    throw ConfigError(fmt::format(
        "the band {} has {} channels, source takes {} to {}{}",
        file.beams.empty() ? "of the packets" : "of the beams file", file.n_channels,
        source.first_channel, source.first_channel + n - 1,
        numbered > 0 ? fmt::format("; the packets count {} (source.packet, count)", numbered)
                     : ""));
  const auto center = [&](std::int64_t k) {
    return file.first_center_hz + static_cast<double>(k) * file.channel_step_hz;
  };
  const bool descending = file.channel_step_hz < 0;
  const std::int64_t lowest = source.first_channel + (descending ? n - 1 : 0);
  return {{center(lowest), std::abs(file.channel_step_hz), n}, descending};
}

}  // namespace

LiveBeams live_beams(const ObservationConfig& config) {
  const SourceConfig& s = config.source;
  if (!s.packet->has_channels())
    throw ConfigError(
        "source.packet: packets of source.format = \"best2\" hold channels: add a header field "
        "\"first_channel\" or an axis \"channel\", or set source.format = \"described\" for time "
        "samples");
  LiveBeams live;
  live.file = array_of_packets(config);
  live.input_line = order_antennas(s, live.file);
  if (live.file.gains.empty() && !config.calibration.gains.empty())
    live.file = with_gains(live, live.file, resolve_path(config, config.calibration.gains));
  const DescribedBand band = channels_taken(s, live.file);
  const std::int64_t n_inputs = live.file.array.n_inputs();
  live.frequency = band.channels;
  live.receiver = live_described_config(config, n_inputs, simulation_start_tai_ns(config), &band);
  live.in_place = live.file.array.n_pols() == 1 && holds_pairs(live.receiver.packet, n_inputs);
  return live;
}

BeamsFile ordered_beams(const ObservationConfig& config, const std::string& path) {
  BeamsFile file = load_beams(path);
  order_antennas(config.source, file);
  return file;
}

BeamsFile with_gains(const LiveBeams& beams, BeamsFile file, const std::string& csv) {
  const auto gains = read_gains_csv(csv, static_cast<std::int64_t>(beams.input_line.size()));
  file.gains.clear();
  for (const std::int64_t line : beams.input_line) file.gains.push_back(gains[line]);
  return file;
}

BeamSetup beam_setup(const ObservationConfig& config, const LiveBeams& beams) {
  BeamSetup setup;
  setup.beams = config.beams;
  setup.file = beams.file;
  setup.frequency = beams.frequency;
  setup.clock = beams.receiver.clock;
  setup.max_spectra = beams.receiver.chunk_ticks;
  return setup;
}

StreamBeams stream_beams(const ObservationConfig& config, const ArrayLayout& array,
                         const SpectraMetadata& metadata) {
  check_beams(config.beams);
  if (metadata.format != SampleFormat::ci4 && metadata.format != SampleFormat::ci8)
    throw ConfigError(
        fmt::format("beams are made of spectra of 4 or 8 bits, these are {}: set "
                    "channelize.bits = 8",
                    name(metadata.format)));
  BeamsContext context;
  context.array = array;
  context.band_of_data = true;
  StreamBeams stream;
  BeamSetup& setup = stream.setup;
  setup.file = load_beams(resolve_path(config, config.beams.file), context);
  stream.inputs = choose_inputs(array, config.beams.pol);
  // The beams file may have gains of its own; else those of the observation are divided out.
  if (setup.file.gains.empty() && !config.calibration.gains.empty())
    setup.file.gains =
        read_gains_csv(resolve_path(config, config.calibration.gains), array.n_inputs());
  if (!setup.file.gains.empty()) {  // of the inputs that are used, in their order
    const auto gains = setup.file.gains;
    setup.file.gains.clear();
    for (const std::int64_t input : stream.inputs.order) setup.file.gains.push_back(gains[input]);
  }
  setup.file.array = with_inputs(setup.file.array, stream.inputs);
  setup.beams = config.beams;
  setup.frequency = metadata.frequency;
  setup.clock = metadata.clock;
  setup.max_spectra = metadata.max_gulp;
  setup.time_source = metadata.time_source;
  setup.n_pols = stream.inputs.n_pols;
  setup.format = metadata.format;
  setup.order = beamform::InputOrder::spectra;
  setup.block_inputs = stream.inputs.order;
  setup.scale.clear();
  for (const std::int64_t input : stream.inputs.order)
    if (!metadata.scale.empty()) setup.scale.push_back(metadata.scale[input]);
  if (metadata.window_s > 0)
    stream.shift_ns = std::llround(0.5e9 * (metadata.window_s - metadata.clock.seconds(1)));
  return stream;
}

std::unique_ptr<PacketSimulation> simulate_live_beams(const ObservationConfig& config,
                                                      const LiveBeams& beams,
                                                      const simulate::PacketSink& sink) {
  return std::make_unique<DescribedSimulation>(config, beams.file.array, beams.receiver,
                                               beams.receiver.clock.epoch_tai_ns,
                                               beams.file.earth_orientation, sink);
}

std::unique_ptr<PacketSimulation> make_simulation(const ObservationConfig& config,
                                                  const simulate::PacketSink& sink) {
  if (is_live_beams(config.source)) return simulate_live_beams(config, live_beams(config), sink);
  if (is_described(config.source))
    return std::make_unique<DescribedSimulation>(config, load_array(config, 0),
                                                 simulation_start_tai_ns(config), sink);
  if (is_live_spectra(config.source)) {
    const ArrayLayout array = load_array(config, 0);
    if (is_live_spead(config.source))
      return std::make_unique<SpectraSimulation>(config, array, live_spead_config(config, array),
                                                 sink);
    return std::make_unique<SpectraSimulation>(config, array, live_spectra_config(config, array),
                                               sink);
  }
  return std::make_unique<Simulation>(config, simulation_start_tai_ns(config), sink);
}

}  // namespace ryle::pipeline
