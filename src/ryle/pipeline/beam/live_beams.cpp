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

constexpr std::int64_t kPacketSpectra = wire::kBest2Samples;
constexpr std::int64_t kPacketAntennas = wire::kBest2Antennas;

void check_beams(const BeamsConfig& b) {
  if ((b.integration_spectra & (b.integration_spectra - 1)) != 0)
    throw ConfigError(fmt::format(
        "beams.integration_spectra = {} is no power of two: windows would straddle packets",
        b.integration_spectra));
  if (b.bits != 8 && b.bits != 32)
    throw ConfigError(
        fmt::format("beams.bits = {}: filterbanks of beams have 8 or 32 bits", b.bits));
}

// The array of the packets: that of the beams file, or of [telescope] where there are no beams.
BeamsFile best2_array(const ObservationConfig& config) {
  const auto& t = config.telescope;
  if (config.beams.file.empty()) {
    if (t.layout.empty() && t.station.empty())
      throw ConfigError(
          "beams.file is empty: name the beams file (TOML with the array, its band and the beams; "
          "`ryle import best2` makes one), or the array alone in telescope.layout");
    BeamsFile file;
    file.array = load_array(config, kPacketAntennas);
    file.earth_orientation.dut1_s = t.dut1_s;
    file.n_channels = wire::kBest2Channels;
    file.first_center_hz = wire::best2_center_hz(0);
    file.channel_step_hz = wire::best2_center_hz(1) - file.first_center_hz;
    return file;
  }
  check_beams(config.beams);
  if (!t.layout.empty() || !t.station.empty())
    throw ConfigError(
        "telescope.layout is given twice: with beams.file the array is that of the beams file");
  const auto& s = config.source;
  if (is_received(s) && s.start_utc == "now")
    throw ConfigError(
        "source.start_utc is needed: the UTC of spectrum 0 of the packets' counter; beams are "
        "pointed by it");
  return load_beams(resolve_path(config, config.beams.file));
}

// Inputs and gains from the order of the layout to that of the packets.
std::vector<std::int64_t> order_antennas(const SourceConfig& source, BeamsFile& file) {
  auto& inputs = file.array.inputs;
  if (file.array.n_inputs() != kPacketAntennas || file.array.n_pols() != 1)
    throw ConfigError(
        fmt::format("{} has {} inputs in {} polarizations; BEST-2 packets hold 32 antennas of one",
                    file.array.name, file.array.n_inputs(), file.array.n_pols()));
  std::vector<std::int64_t> map = source.antenna_map;
  if (map.empty()) {
    for (std::int64_t a = 0; a < kPacketAntennas; ++a) map.push_back(a);
  }
  std::vector<std::int64_t> sorted = map;
  std::sort(sorted.begin(), sorted.end());
  for (std::int64_t a = 0; a < kPacketAntennas; ++a) {
    if (static_cast<std::int64_t>(map.size()) != kPacketAntennas || sorted[a] != a)
      throw ConfigError(fmt::format(
          "source.antenna_map has {} numbers; each of 0 to 31 is wanted once", map.size()));
  }
  const auto from_inputs = inputs;
  const auto from_gains = file.gains;
  std::vector<std::int64_t> lines;
  for (std::int64_t a = 0; a < kPacketAntennas; ++a) {
    const std::int64_t wired = source.pair_swap ? a ^ 2 : a;
    lines.push_back(map[wired]);
    const auto line = static_cast<std::size_t>(lines.back());
    inputs[a] = from_inputs[line];
    if (!from_gains.empty()) file.gains[a] = from_gains[line];
  }
  return lines;
}

FrequencyAxis channels_taken(const SourceConfig& source, const BeamsFile& file) {
  const std::int64_t n =
      source.n_channels > 0 ? source.n_channels : file.n_channels - source.first_channel;
  if (file.n_channels != wire::kBest2Channels || n < 1 ||
      source.first_channel + n > file.n_channels)
    throw ConfigError(fmt::format(
        "the band of the beams file has {} channels, source takes {} to {}: BEST-2 packets count "
        "1024",
        file.n_channels, source.first_channel, source.first_channel + n - 1));
  const auto center = [&](std::int64_t k) {
    return file.first_center_hz + static_cast<double>(k) * file.channel_step_hz;
  };
  const std::int64_t lowest =
      file.channel_step_hz < 0 ? source.first_channel + n - 1 : source.first_channel;
  return {center(lowest), std::abs(file.channel_step_hz), n};
}

}  // namespace

LiveBeams live_beams(const ObservationConfig& config) {
  const SourceConfig& s = config.source;
  LiveBeams live;
  live.file = best2_array(config);
  live.input_line = order_antennas(s, live.file);
  if (live.file.gains.empty() && !config.calibration.gains.empty())
    live.file = with_gains(live, live.file, resolve_path(config, config.calibration.gains));
  live.frequency = channels_taken(s, live.file);
  Best2SourceConfig& r = live.receiver;
  r.endpoints = s.listen;
  r.first_channel = s.first_channel;
  r.n_channels = live.frequency.n_channels;
  r.descending = live.file.channel_step_hz < 0;
  if (s.sample_rate_hz.num > 0) r.clock.rate_hz = s.sample_rate_hz;
  r.clock.epoch_tai_ns = simulation_start_tai_ns(config);
  r.frequency = live.frequency;
  const double packets =
      s.chunk_ms * 1e-3 * r.clock.rate_hz.value() / static_cast<double>(kPacketSpectra);
  r.chunk_spectra = kPacketSpectra * std::max<std::int64_t>(1, std::llround(packets));
  r.n_chunks = static_cast<int>(s.n_chunks + s.window_chunks);
  r.window_chunks = static_cast<int>(s.window_chunks);
  r.memory = config.runtime.device == "cpu" ? MemorySpace::host : MemorySpace::pinned;
  static_cast<ReceiverConfig&>(r) = receiver_config(config);
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
  setup.max_spectra = beams.receiver.chunk_spectra;
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

BeamSimulation::BeamSimulation(const ObservationConfig& config, const LiveBeams& beams,
                               const simulate::PacketSink& sink) {
  const auto& s = config.simulator;
  const auto& rate = beams.receiver.clock.rate_hz;
  constexpr std::int64_t kMaxSpectra = 1 << 14;
  if (s.period_samples % kPacketSpectra != 0 || s.period_samples > kMaxSpectra)
    throw ConfigError(fmt::format(
        "simulator.period_samples = {}: a record of BEST-2 has whole packets of {} spectra and at "
        "most {}; 2048 take 64 MiB",
        s.period_samples, kPacketSpectra, kMaxSpectra));
  if (beams.receiver.endpoints.size() != 1)
    throw ConfigError("source.listen: the simulator sends BEST-2 packets to one endpoint");
  const simulate::Scene scene = make_scene(config, kPacketAntennas);
  simulate::SpectraConfig spectra;
  spectra.n_spectra = s.period_samples;
  spectra.spectrum_rate_hz = rate;
  spectra.channels = beams.frequency;
  spectra.start_tai_ns = beams.receiver.clock.epoch_tai_ns;
  spectra.level_lsb = s.rms_lsb;
  spectra.n_workers = static_cast<int>(config.runtime.threads);
  spectra.earth_orientation = beams.file.earth_orientation;
  simulate::Best2SenderConfig sender;
  sender.endpoint = beams.receiver.endpoints.front();
  sender.first_channel = beams.receiver.first_channel;
  sender.descending = beams.receiver.descending;
  sender.speed = s.speed;
  sender.duration_s = s.duration_s;
  sender.impairments = send_impairments(s);
  sender.sink = sink;
  if (s.dying_receiver >= 0) {
    const double until = s.returns_at_s > s.dies_at_s ? s.returns_at_s : s.duration_s;
    sender.outages.push_back({s.dying_receiver, s.dies_at_s, until});
  }
  if (has_moving_sky(config)) {
    auto stream = std::make_shared<simulate::SpectraStream>(beams.file.array, scene, spectra);
    jy_per_count2_ = stream->jy_per_count2();
    sender_ = std::make_unique<simulate::Best2Sender>(std::move(stream), sender);
    return;
  }
  spectra.at_s = -1;  // before all flashes
  const auto quiet = simulate::simulate_spectra(beams.file.array, scene, spectra);
  std::vector<std::unique_ptr<simulate::SpectraRecord>> records;
  std::vector<simulate::Best2Pulse> pulses;
  for (std::size_t k = 0; k < scene.sources.size(); ++k) {
    const auto& source = scene.sources[k];
    if (!simulate::is_transient(source)) continue;
    simulate::Scene alone = scene;
    for (std::size_t other = 0; other < scene.sources.size(); ++other) {
      if (other != k && simulate::is_transient(scene.sources[other]))
        alone.sources[other].start_s = 1e9;
    }
    spectra.at_s = source.start_s;
    records.push_back(std::make_unique<simulate::SpectraRecord>(
        simulate::simulate_spectra(beams.file.array, alone, spectra)));
    pulses.push_back({source.start_s * rate.value(), source.duration_s * rate.value(),
                      source.period_s * rate.value(), source.dm_pc_cm3, records.back().get()});
  }
  jy_per_count2_ = quiet.jy_per_count2;
  sender_ = std::make_unique<simulate::Best2Sender>(quiet, pulses, sender);
}

std::unique_ptr<PacketSimulation> make_simulation(const ObservationConfig& config,
                                                  const simulate::PacketSink& sink) {
  if (is_live_beams(config.source))
    return std::make_unique<BeamSimulation>(config, live_beams(config), sink);
  if (is_described(config.source))
    return std::make_unique<DescribedSimulation>(config, load_array(config, 0),
                                                 simulation_start_tai_ns(config), sink);
  if (is_live_spectra(config.source)) {
    const ArrayLayout array = load_array(config, 0);
    return std::make_unique<SpectraSimulation>(config, array, live_spectra_config(config, array),
                                               sink);
  }
  return std::make_unique<Simulation>(config, simulation_start_tai_ns(config), sink);
}

}  // namespace ryle::pipeline
