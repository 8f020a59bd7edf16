// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/live_described.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/ingest/described_placement.hpp"
#include "ryle/pipeline/visibility/changing_sky.hpp"
#include "ryle/pipeline/visibility/live_frames.hpp"
#include "ryle/pipeline/visibility/live_spectra.hpp"

namespace ryle::pipeline {
namespace {

using wire::Axis;

// Channels received: those of source.n_channels, or of one packet.
std::int64_t described_channels(const SourceConfig& source, const wire::PacketDescription& packet) {
  return source.n_channels > 0 ? source.n_channels : packet.extent(Axis::channel);
}

// Centers, ascending, of channel numbers that ascend or, in an inverted band, descend.
FrequencyAxis described_axis(const SourceConfig& source, const wire::PacketDescription& packet) {
  const std::int64_t n = described_channels(source, packet);
  const double width_hz =
      source.channel_width_hz > 0 ? source.channel_width_hz : source.sample_rate_hz.value();
  const std::int64_t lowest = source.first_channel + (source.inverted_band ? n - 1 : 0);
  const double offset_hz = static_cast<double>(lowest) * width_hz;
  return {source.channel_zero_mhz * 1e6 + (source.inverted_band ? -offset_hz : offset_hz), width_hz,
          n};
}

std::int64_t described_chunk_ticks(const SourceConfig& source,
                                   const wire::PacketDescription& packet) {
  const std::int64_t alignment = described_chunk_alignment(packet);
  const double ticks = source.chunk_ms * 1e-3 * source.sample_rate_hz.value();
  return alignment *
         std::max<std::int64_t>(1, std::llround(ticks / static_cast<double>(alignment)));
}

TimeSource described_time(const SourceConfig& source, const wire::PacketDescription& packet) {
  if (packet.is_dated()) return TimeSource::packet;
  if (is_recorded_stream(source)) return TimeSource::header;
  return is_received(source) && source.start_utc == "now" ? TimeSource::arrival
                                                          : TimeSource::configured;
}

void check_source(const SourceConfig& source) {
  if (source.sample_rate_hz.num <= 0)
    throw ConfigError(fmt::format(
        "source.sample_rate_hz is needed for source.format = \"{}\": samples, or spectra "
        "where packets hold channels, per second of one input",
        source.format));
  if (source.listen.empty())
    throw ConfigError("source.listen is empty: give an endpoint, e.g. [\"udp://0.0.0.0:4015\"]");
}

simulate::DescribedSenderConfig described_sender(const ObservationConfig& config,
                                                 const DescribedSourceConfig& receiver) {
  const auto& s = config.simulator;
  simulate::DescribedSenderConfig sender;
  sender.packet = receiver.packet;
  sender.streams = described_geometry(receiver.packet, receiver.n_inputs, receiver.first_channel,
                                      receiver.n_channels);
  sender.descending = receiver.descending;
  sender.endpoints = config.source.listen;
  sender.speed = s.speed;
  sender.duration_s = s.duration_s;
  if (s.dying_receiver >= 0) {
    const double until = s.returns_at_s > s.dies_at_s ? s.returns_at_s : s.duration_s;
    sender.outages.push_back({s.dying_receiver, s.dies_at_s, until});
  }
  return sender;
}

}  // namespace

DescribedSourceConfig live_described_config(const ObservationConfig& config, std::int64_t n_inputs,
                                            std::int64_t start_tai_ns, const DescribedBand* band) {
  const SourceConfig& s = config.source;
  check_source(s);
  DescribedSourceConfig d;
  if (is_live_beams(s)) d.name = s.format;
  d.endpoints = s.listen;
  d.packet = described_packet(s, n_inputs);
  d.n_inputs = n_inputs;
  if (d.packet.has_channels()) {
    if (d.packet.sample.bits > 8)
      throw UnsupportedError(
          fmt::format("source.packet: payload.sample has {} bits a part: spectra of up to 8 are "
                      "taken live, time samples of up to 16",
                      d.packet.sample.bits));
    d.first_channel = s.first_channel;
    d.channels = band != nullptr ? band->channels : described_axis(s, d.packet);
    d.n_channels = d.channels.n_channels;
    d.descending = band != nullptr ? band->descending : s.inverted_band;
    if (!(d.channels.first_center_hz > 0))
      throw ConfigError(fmt::format(
          "the lowest of the described channels is at {} MHz: set source.channel_zero_mhz, the sky "
          "frequency of channel number 0, and source.channel_width_hz",
          d.channels.first_center_hz * 1e-6));
  }
  d.clock.rate_hz = s.sample_rate_hz;
  d.clock.epoch_tai_ns = d.packet.zero_tai_ns.value_or(start_tai_ns);
  d.time_source = described_time(s, d.packet);
  d.chunk_ticks = described_chunk_ticks(s, d.packet);
  d.n_chunks = static_cast<int>(s.n_chunks + s.window_chunks);
  d.window_chunks = static_cast<int>(s.window_chunks);
  d.memory = config.runtime.device == "cpu" ? MemorySpace::host : MemorySpace::pinned;
  static_cast<ReceiverConfig&>(d) = receiver_config(config);
  if (is_recorded_stream(s)) d.stream = stream_shape(s, d);
  if (is_standard(s) && !d.stream) d.rejected_text = frame_text(s);
  described_source_chunk_bytes(d);  // what does not fit is found before anything is opened
  return d;
}

SampleMetadata described_sample_metadata(const ObservationConfig& config) {
  const SourceConfig& s = config.source;
  check_source(s);
  SampleMetadata metadata;
  metadata.n_inputs = load_array(config, 0).n_inputs();
  const wire::PacketDescription packet = described_packet(s, metadata.n_inputs);
  described_geometry(packet, metadata.n_inputs, 0, 1);
  metadata.layout = described_samples(packet, metadata.n_inputs);
  metadata.clock.rate_hz = s.sample_rate_hz;
  metadata.clock.epoch_tai_ns = s.start_utc == "now" ? 0 : tai_ns_from_utc_iso(s.start_utc);
  metadata.reference_hz = s.center_mhz * 1e6;
  metadata.inverted_band = s.inverted_band;
  metadata.max_feed_ticks = described_chunk_ticks(s, packet);
  metadata.time_source = described_time(s, packet);
  return metadata;
}

SpectraMetadata described_spectra_metadata(const DescribedSourceConfig& receiver) {
  SpectraMetadata metadata;
  metadata.frequency = receiver.channels;
  metadata.clock = receiver.clock;
  metadata.max_gulp = receiver.chunk_ticks;
  metadata.format = described_shape(receiver).format;
  metadata.four_bits = receiver.packet.sample.bits == 4;
  metadata.time_source = receiver.time_source;
  metadata.live = true;
  return metadata;
}

namespace {

DescribedSourceConfig simulated_receiver(const ObservationConfig& config, std::int64_t n_inputs,
                                         std::int64_t start_tai_ns) {
  if (is_recorded_stream(config.source))
    throw UnsupportedError("the simulator sends no streams of source.format = \"" +
                           config.source.format +
                           "\"; vdif, codif and packets of a [source.packet] it does send");
  return live_described_config(config, n_inputs, start_tai_ns);
}

}  // namespace

DescribedSimulation::DescribedSimulation(const ObservationConfig& config, const ArrayLayout& array,
                                         std::int64_t start_tai_ns,
                                         const simulate::PacketSink& sink)
    : DescribedSimulation(config, array, simulated_receiver(config, array.n_inputs(), start_tai_ns),
                          start_tai_ns, EarthOrientation{.dut1_s = config.telescope.dut1_s}, sink) {
}

void DescribedSimulation::mark(const ObservationConfig& config,
                               const std::vector<Vector3>& sources_enu) {
  for (std::size_t k = 0; k < sources_enu.size(); ++k)
    if (sources_enu[k][2] >= 0)
      marks_.push_back({sources_enu[k], config.simulator.sources[k].name});
}

void DescribedSimulation::send_spectra(const ObservationConfig& config, const ArrayLayout& array,
                                       const simulate::Scene& scene,
                                       const simulate::SpectraConfig& spectra,
                                       const simulate::DescribedSenderConfig& sender) {
  constexpr std::int64_t kMaxRecordBytes = std::int64_t{1} << 32;
  const std::int64_t spectrum_bytes = spectra.channels.n_channels * array.n_inputs();
  // A sky that is drawn as it is sent has one record. Else flashes have up to two each, beside that
  // without any: with and without it, or as made and as cut into packets.
  const std::int64_t n_flashes =
      has_moving_sky(config) ? 0 : std::ranges::count_if(scene.sources, simulate::is_transient);
  const std::int64_t max_spectra = kMaxRecordBytes / (1 + 2 * n_flashes) / spectrum_bytes;
  if (spectra.n_spectra > max_spectra)
    throw ConfigError(fmt::format(
        "simulator.period_samples = {}: records of {} channels of {} inputs for a sky with {} "
        "sources that flash have at most {} spectra, 4 GiB in all",
        spectra.n_spectra, spectra.channels.n_channels, array.n_inputs(), n_flashes, max_spectra));
  if (has_moving_sky(config)) {
    const auto stream = std::make_shared<simulate::SpectraStream>(array, scene, spectra);
    jy_per_count2_ = stream->jy_per_count2();
    mark(config, stream->make_record().sources_enu);
    sender_ = std::make_unique<simulate::DescribedSender>(stream, sender);
    return;
  }
  const auto dispersed = [](const simulate::Source& s) {
    return s.period_s > 0 || s.dm_pc_cm3 > 0;
  };
  if (is_live_beams(config.source) ||
      std::any_of(scene.sources.begin(), scene.sources.end(), dispersed)) {
    const PulsedSky sky(array, scene, spectra);
    jy_per_count2_ = sky.quiet().jy_per_count2;
    mark(config, sky.quiet().sources_enu);
    sender_ = std::make_unique<simulate::DescribedSender>(sky.quiet(), sky.pulses(), sender);
    return;
  }
  const ChangingSky sky(array, scene, spectra);
  const simulate::SpectraRecord& record = *sky.epochs().front().record;
  jy_per_count2_ = record.jy_per_count2;
  mark(config, record.sources_enu);
  sender_ = std::make_unique<simulate::DescribedSender>(sky.epochs(), sender);
}

DescribedSimulation::DescribedSimulation(const ObservationConfig& config, const ArrayLayout& array,
                                         const DescribedSourceConfig& receiver,
                                         std::int64_t start_tai_ns, const EarthOrientation& earth,
                                         const simulate::PacketSink& sink) {
  const auto& s = config.simulator;
  const simulate::Scene scene = make_scene(config, array.n_inputs());
  auto sender = described_sender(config, receiver);
  sender.impairments = send_impairments(s);
  sender.sink = sink;
  if (receiver.packet.has_channels()) {
    auto spectra =
        simulated_spectra(config, {start_tai_ns, receiver.clock.rate_hz}, receiver.channels);
    spectra.earth_orientation = earth;
    send_spectra(config, array, scene, spectra, sender);
    return;
  }
  if (!has_moving_sky(config) &&
      std::any_of(scene.sources.begin(), scene.sources.end(), simulate::is_transient))
    throw ConfigError(
        "simulator.source.duration_s: time samples have flashes with simulator.sky = \"moving\" "
        "only; spectra of an F-engine have them always");
  if (config.source.inverted_band)
    throw ConfigError(
        "source.inverted_band: the simulator makes described time samples of upright bands only");
  const wire::SampleCode& sample = receiver.packet.sample;
  simulate::VoltageConfig voltages;
  voltages.n_samples = s.period_samples;
  voltages.sample_rate_hz = receiver.clock.rate_hz;
  voltages.center_hz = config.source.center_mhz * 1e6;
  voltages.start_tai_ns = start_tai_ns;
  voltages.level_lsb = s.rms_lsb;
  voltages.n_workers = static_cast<int>(config.runtime.threads);
  voltages.earth_orientation = earth;
  // Levels stand for a range of values each.
  voltages.bits = sample.encoding == Encoding::levels ? 8 : sample.bits;
  voltages.real = !sample.complex;
  if (has_moving_sky(config)) {
    const auto stream = std::make_shared<simulate::VoltageStream>(array, scene, voltages);
    const auto shape = stream->make_record();
    jy_per_count2_ = shape.jy_per_count2;
    mark(config, shape.sources_enu);
    sender_ = std::make_unique<simulate::DescribedSender>(stream, sender);
    return;
  }
  const auto record = simulate::simulate_voltages(array, scene, voltages);
  jy_per_count2_ = record.jy_per_count2;
  mark(config, record.sources_enu);
  sender_ = std::make_unique<simulate::DescribedSender>(record, sender);
}

}  // namespace ryle::pipeline
