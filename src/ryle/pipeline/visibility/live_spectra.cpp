// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/live_spectra.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ryle/core/error.hpp"
#include "ryle/pipeline/visibility/changing_sky.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "ryle/simulate/spead_sender.hpp"
#include "ryle/wire/chips.hpp"
#include "ryle/wire/lwa.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kChunkAlignment = 128;  // whole blocks of ci4
constexpr std::int64_t kLwaPoints = 8192;

}  // namespace

double expected_speed(const ObservationConfig& config) {
  if (config.source.kind == "pcap" && config.source.replay_speed > 0)
    return config.source.replay_speed;
  const bool simulated = config.source.kind == "simulator" && config.simulator.speed > 0;
  return simulated ? config.simulator.speed : 1;
}

ReceiverConfig receiver_config(const ObservationConfig& config) {
  const SourceConfig& s = config.source;
  ReceiverConfig r;
  r.stall_budget_s = s.stall_budget_s;
  r.rate_factor = expected_speed(config);
  r.allow_small_rcvbuf = s.allow_small_rcvbuf;
  r.allowed_senders = s.allowed_senders;
  r.max_clock_error_s = s.kind == "network" ? s.max_clock_error_s : 0;
  if (s.kind == "pcap") {
    if (s.file.empty())
      throw ConfigError("source.file is empty: name the capture to replay, a PCAP or PCAPNG file");
    r.capture = s.file;
    r.replay_speed = s.replay_speed;
  }
  // What ends by itself, and senders that can be asked to wait.
  const auto n_pipes = std::ranges::count_if(
      s.listen, [](const std::string& text) { return parse_endpoint(text).is_pipe(); });
  const bool recorded = is_recorded_stream(s);
  if (!recorded && n_pipes > 0 && n_pipes < std::ssize(s.listen))
    throw ConfigError(
        "source.listen: pipes wait for the engine and end the run, other endpoints do neither: "
        "list pipe: and fd:// endpoints alone");
  r.waits = recorded || n_pipes > 0 || (all_streams(s) && s.lossless);
  r.close_after_ns = static_cast<MonotonicNs>(s.close_after_ms * 1e6);
  r.patience_ns = static_cast<MonotonicNs>(s.no_data_s * 1e9);
  return r;
}

FengineSourceConfig live_spectra_config(const ObservationConfig& config, const ArrayLayout& array) {
  const SourceConfig& s = config.source;
  if (s.listen.empty())
    throw ConfigError("source.listen is empty: give an endpoint, e.g. [\"udp://0.0.0.0:4015\"]");
  if (s.n_channels <= 0 || s.first_channel <= 0) {
    throw ConfigError("source.first_channel and source.n_channels are needed for " + s.format +
                      ": which channels the packets carry");
  }
  FengineSourceConfig f;
  f.format = fengine_format(s.format);
  f.endpoints = s.listen;
  f.first_channel = s.first_channel;
  f.n_channels = s.n_channels;
  f.channels_per_packet = s.channels_per_packet;
  if (f.format == FengineFormat::chips) {
    if (array.n_inputs() % wire::kChipsInputsPerBoard != 0) {
      throw ConfigError(
          "the array has " + std::to_string(array.n_inputs()) +
          " inputs; CHIPS boards have 32 each: this is not the array that sends these packets");
    }
    f.n_boards = array.n_inputs() / wire::kChipsInputsPerBoard;
  } else {
    f.n_stands = array.n_inputs() / 2;
    f.channel_width_hz =
        static_cast<double>(wire::kLwaTicksPerSecond) / static_cast<double>(kLwaPoints);
    f.clock.rate_hz = Rational{wire::kLwaTicksPerSecond, kLwaPoints}.reduced();
  }
  if (s.channel_width_hz > 0) f.channel_width_hz = s.channel_width_hz;
  if (s.sample_rate_hz.num > 0) f.clock.rate_hz = s.sample_rate_hz;
  f.clock.epoch_tai_ns = simulation_start_tai_ns(config);
  // CHIPS count from an instant that only the operator knows.
  const bool unknown = f.format == FengineFormat::chips && is_received(s) && s.start_utc == "now";
  f.time_source = f.format != FengineFormat::chips ? TimeSource::packet
                  : unknown                        ? TimeSource::arrival
                                                   : TimeSource::configured;
  const double spectra = s.chunk_ms * 1e-3 * f.clock.rate_hz.value();
  f.chunk_spectra =
      kChunkAlignment *
      std::max<std::int64_t>(1, std::llround(spectra / static_cast<double>(kChunkAlignment)));
  f.n_chunks = static_cast<int>(s.n_chunks + s.window_chunks);
  f.window_chunks = static_cast<int>(s.window_chunks);
  f.memory = config.runtime.device == "cpu" ? MemorySpace::host : MemorySpace::pinned;
  static_cast<ReceiverConfig&>(f) = receiver_config(config);
  return f;
}

SpeadSourceConfig live_spead_config(const ObservationConfig& config, const ArrayLayout& array) {
  const SourceConfig& s = config.source;
  if (s.n_channels <= 0)
    throw ConfigError("source.n_channels is needed for spead: the channels of all heaps received");
  if (s.sample_rate_hz.num <= 0)
    throw ConfigError("source.sample_rate_hz is needed for spead: spectra per second, exactly");
  if (is_received(s) && s.start_utc == "now")
    throw ConfigError(
        "source.start_utc is needed for spead: the UTC of timestamp 0, the sync time of the array");
  SpeadSourceConfig f;
  f.beams = s.heaps == "beam";
  if (!f.beams && array.n_inputs() % 2 != 0)
    throw ConfigError("the array has " + std::to_string(array.n_inputs()) +
                      " inputs; heaps of an F-engine have two polarizations");
  f.endpoints = s.listen;
  f.n_fengines = array.n_inputs() / f.n_pols();
  f.first_channel = s.first_channel;
  f.n_channels = s.n_channels;
  f.channels_per_heap = s.channels_per_packet;
  f.spectra_per_heap = s.spectra_per_heap;
  f.ticks_per_spectrum = s.ticks_per_spectrum;
  f.clock = {simulation_start_tai_ns(config), s.sample_rate_hz};
  f.channel_zero_hz = s.channel_zero_mhz * 1e6;
  f.channel_width_hz = s.channel_width_hz > 0 ? s.channel_width_hz : s.sample_rate_hz.value();
  const auto unit = static_cast<double>(std::lcm(s.spectra_per_heap, kChunkAlignment));
  f.chunk_spectra =
      static_cast<std::int64_t>(unit) *
      std::max<std::int64_t>(1, std::llround(s.chunk_ms * 1e-3 * s.sample_rate_hz.value() / unit));
  f.n_chunks = static_cast<int>(s.n_chunks + s.window_chunks);
  f.window_chunks = static_cast<int>(s.window_chunks);
  f.memory = config.runtime.device == "cpu" ? MemorySpace::host : MemorySpace::pinned;
  static_cast<ReceiverConfig&>(f) = receiver_config(config);
  return f;
}

FrequencyAxis fengine_channels(const FengineSourceConfig& receiver) {
  return {static_cast<double>(receiver.first_channel) * receiver.channel_width_hz,
          receiver.channel_width_hz, receiver.n_channels};
}

SpectraMetadata live_spectra_metadata(const FengineSourceConfig& receiver) {
  SpectraMetadata metadata;
  metadata.frequency = fengine_channels(receiver);
  metadata.clock = receiver.clock;
  metadata.max_gulp = receiver.chunk_spectra;
  metadata.format = SampleFormat::ci4;
  metadata.four_bits = true;
  metadata.time_source = receiver.time_source;
  metadata.live = true;
  return metadata;
}

SpectraMetadata live_spead_metadata(const SpeadSourceConfig& receiver) {
  SpectraMetadata metadata;
  metadata.frequency = receiver.channels();
  metadata.clock = receiver.clock;
  metadata.max_gulp = receiver.chunk_spectra;
  metadata.format = SampleFormat::ci8;
  metadata.time_source = TimeSource::configured;
  metadata.live = true;
  return metadata;
}

SpectraSimulation::SpectraSimulation(const ObservationConfig& config, const ArrayLayout& array,
                                     const FengineSourceConfig& receiver,
                                     const simulate::PacketSink& sink) {
  simulate::FengineSenderConfig sender;
  sender.format = config.source.format;
  sender.first_channel = receiver.first_channel;
  sender.channels_per_packet = receiver.channels_per_packet;
  begin<simulate::FengineSender>(config, array, receiver.clock, fengine_channels(receiver), sender,
                                 sink);
}

SpectraSimulation::SpectraSimulation(const ObservationConfig& config, const ArrayLayout& array,
                                     const SpeadSourceConfig& receiver,
                                     const simulate::PacketSink& sink) {
  simulate::SpeadSenderConfig sender;
  sender.beams = receiver.beams;
  sender.first_channel = receiver.first_channel;
  sender.channels_per_heap = receiver.channels_per_heap;
  sender.spectra_per_heap = receiver.spectra_per_heap;
  sender.ticks_per_spectrum = receiver.ticks_per_spectrum;
  begin<simulate::SpeadSender>(config, array, receiver.clock, receiver.channels(), sender, sink);
}

template <class Sender, class SenderConfig>
void SpectraSimulation::begin(const ObservationConfig& config, const ArrayLayout& array,
                              const SampleClock& clock, const FrequencyAxis& channels,
                              SenderConfig sender, const simulate::PacketSink& sink) {
  const auto& s = config.simulator;
  sender.impairments = send_impairments(s);
  sender.sink = sink;
  sender.endpoints = config.source.listen;
  sender.speed = s.speed;
  sender.duration_s = s.duration_s;
  if (s.dying_receiver >= 0) {
    const double until = s.returns_at_s > s.dies_at_s ? s.returns_at_s : s.duration_s;
    sender.outages.push_back({s.dying_receiver, s.dies_at_s, until});
  }
  const simulate::Scene scene = make_scene(config, array.n_inputs());
  const simulate::SpectraConfig spectra = simulated_spectra(config, clock, channels);
  if (has_moving_sky(config)) {
    const auto stream = std::make_shared<simulate::SpectraStream>(array, scene, spectra);
    jy_per_count2_ = stream->jy_per_count2();
    sender_ = std::make_unique<Sender>(stream, sender);
    return;
  }
  const ChangingSky sky(array, scene, spectra);
  jy_per_count2_ = sky.epochs().front().record->jy_per_count2;
  sender_ = std::make_unique<Sender>(sky.epochs(), sender);
}

SimulatedFile write_simulated_spectra(const ObservationConfig& config, const std::string& path) {
  const ArrayLayout array = load_array(config, 0);
  const FengineSourceConfig receiver = live_spectra_config(config, array);
  const simulate::Scene scene = make_scene(config, array.n_inputs());
  const simulate::SpectraConfig spectra =
      simulated_spectra(config, receiver.clock, fengine_channels(receiver));
  simulate::FengineSenderConfig sender;
  sender.format = config.source.format;
  sender.first_channel = receiver.first_channel;
  sender.channels_per_packet = receiver.channels_per_packet;
  const auto n = static_cast<std::int64_t>(
      std::llround(config.simulator.duration_s * receiver.clock.rate_hz.value()));
  if (has_moving_sky(config)) {
    const simulate::SpectraStream stream(array, scene, spectra);
    simulate::write_fengine_file(stream, sender, n, path);
    return {n, array.n_inputs(), stream.jy_per_count2()};
  }
  const ChangingSky sky(array, scene, spectra);
  simulate::write_fengine_file(sky.epochs(), sender, n, path);
  return {n, array.n_inputs(), sky.epochs().front().record->jy_per_count2};
}

}  // namespace ryle::pipeline
