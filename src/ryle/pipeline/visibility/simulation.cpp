// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/simulation.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/ingest/capture_file.hpp"
#include "ryle/pipeline/visibility/live_spectra.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "ryle/simulate/packet_file.hpp"
#include "ryle/simulate/packets.hpp"
#include "ryle/simulate/voltages.hpp"
#include "ryle/telescope/gains.hpp"

namespace ryle::pipeline {
simulate::Scene make_scene(const ObservationConfig& config, std::int64_t n_inputs) {
  const auto& s = config.simulator;
  simulate::Scene scene;
  scene.sefd_jy = s.sefd_jy;
  scene.seed = s.seed;
  scene.dead_inputs = s.dead_inputs;
  scene.element_power = s.element_power;
  if (!s.gains.empty()) {
    for (const auto g : read_gains_csv(resolve_path(config, s.gains), n_inputs))
      scene.gains.emplace_back(g);
  }
  for (const auto& from : s.sources) {
    simulate::Source source;
    source.name = from.name;
    if (from.by_ra_dec)
      source.icrs = SkyDirection{from.ra_deg * kDegree_rad, from.dec_deg * kDegree_rad};
    source.l = from.l;
    source.m = from.m;
    source.flux_jy = from.flux_jy;
    source.q = from.q;
    source.u = from.u;
    source.v = from.v;
    source.start_s = from.start_s;
    source.duration_s = from.duration_s;
    source.period_s = from.period_s;
    source.dm_pc_cm3 = from.dm_pc_cm3;
    const std::string where = "simulator.source \"" + from.name + "\": ";
    if (from.duty_cycle > 0) {
      if (source.period_s <= 0 || source.duration_s > 0)
        throw ConfigError(where +
                          "duty_cycle is the share of a period_s above 0, in the place of "
                          "duration_s");
      source.duration_s = from.duty_cycle * source.period_s;
    }
    if (source.period_s > 0 || source.dm_pc_cm3 > 0) {
      if (source.duration_s <= 0)
        throw ConfigError(where +
                          "period_s and dm_pc_cm3 are of flashes: give duration_s or "
                          "duty_cycle");
      if (!is_described(config.source) && !has_moving_sky(config))
        throw ConfigError(where +
                          "period_s and dm_pc_cm3 work in spectra of described packets and of "
                          "best2, and in those of other formats with simulator.sky = \"moving\"");
    }
    scene.sources.push_back(std::move(source));
  }
  return scene;
}

namespace {

struct VoltageSetup {
  ArrayLayout array;
  simulate::Scene scene;
  simulate::VoltageConfig voltages;
};

VoltageSetup voltage_setup(const ObservationConfig& config, std::int64_t start_tai_ns) {
  const SampleMetadata metadata = live_sample_metadata(config);
  VoltageSetup setup;
  setup.array = load_array(config, metadata.n_inputs);
  setup.scene = make_scene(config, metadata.n_inputs);
  setup.voltages.n_samples = config.simulator.period_samples;
  setup.voltages.sample_rate_hz = live_sample_rate(config);
  setup.voltages.center_hz = config.source.center_mhz * 1e6;
  setup.voltages.start_tai_ns = start_tai_ns;
  setup.voltages.level_lsb = config.simulator.rms_lsb;
  setup.voltages.n_workers = static_cast<int>(config.runtime.threads);
  setup.voltages.earth_orientation.dut1_s = config.telescope.dut1_s;
  return setup;
}

std::shared_ptr<const simulate::VoltageStream> make_stream(const ObservationConfig& config,
                                                           std::int64_t start_tai_ns) {
  VoltageSetup setup = voltage_setup(config, start_tai_ns);
  return std::make_shared<simulate::VoltageStream>(std::move(setup.array), std::move(setup.scene),
                                                   setup.voltages);
}

simulate::VoltageRecord make_record(const ObservationConfig& config, std::int64_t start_tai_ns) {
  const VoltageSetup setup = voltage_setup(config, start_tai_ns);
  if (std::any_of(setup.scene.sources.begin(), setup.scene.sources.end(), simulate::is_transient)) {
    throw ConfigError(
        "simulator.source.duration_s: time samples have flashes with simulator.sky = \"moving\" "
        "only; spectra of an F-engine (chips, tbf, tbx, best2) have them always");
  }
  return simulate::simulate_voltages(setup.array, setup.scene, setup.voltages);
}

simulate::SenderConfig sender_config(const ObservationConfig& config) {
  const auto& s = config.simulator;
  simulate::SenderConfig sender;
  sender.endpoints = config.source.listen;
  sender.speed = s.speed;
  sender.duration_s = s.duration_s;
  sender.impairments = send_impairments(s);
  if (s.dying_receiver >= 0) {
    if (s.dying_receiver >= static_cast<std::int64_t>(config.source.listen.size())) {
      throw ConfigError("simulator.dying_receiver = " + std::to_string(s.dying_receiver) +
                        ": there are " + std::to_string(config.source.listen.size()) +
                        " receivers, counted from 0");
    }
    const double until = s.returns_at_s > s.dies_at_s ? s.returns_at_s : s.duration_s;
    sender.outages.push_back({s.dying_receiver, s.dies_at_s, until});
  }
  return sender;
}

}  // namespace

bool has_moving_sky(const ObservationConfig& config) { return config.simulator.sky == "moving"; }

simulate::SendImpairments send_impairments(const SimulatorConfig& s) {
  simulate::SendImpairments i;
  i.loss = s.loss;
  i.bursts = s.bursts;
  i.burst_packets = s.burst_packets;
  i.duplicate = s.duplicate;
  i.reorder = s.reorder;
  i.reorder_packets = s.reorder_packets;
  i.corrupt = s.corrupt;
  i.clock_step_s = s.clock_step_s;
  i.clock_step_at_s = s.clock_step_at_s;
  i.clock_step_receiver = s.clock_step_receiver;
  i.seed = s.seed;
  return i;
}

bool is_real_time(const ObservationConfig& config) {
  const std::string& kind = config.source.kind;
  if (kind == "pcap") return config.source.replay_speed > 0;
  const auto& listen = config.source.listen;
  const bool piped = std::any_of(listen.begin(), listen.end(), [](const auto& text) {
    return text.starts_with("pipe:") || text.starts_with("fd://");
  });
  if (is_recorded_stream(config.source) || piped) return false;
  return kind == "network" || (kind == "simulator" && !config.simulator.wait_for_run);
}

std::int64_t simulation_start_tai_ns(const ObservationConfig& config) {
  if (config.source.start_utc != "now") return tai_ns_from_utc_iso(config.source.start_utc);
  if (config.source.kind == "pcap") {
    const std::int64_t unix_ns = capture_start_unix_ns(config.source.file);
    return tai_ns_from_unix(unix_ns / 1'000'000'000, unix_ns % 1'000'000'000);
  }
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  return tai_ns_from_unix(now / 1'000'000'000, now % 1'000'000'000);
}

Simulation::Simulation(const ObservationConfig& config, std::int64_t start_tai_ns,
                       const simulate::PacketSink& sink) {
  simulate::SenderConfig to = sender_config(config);
  to.sink = sink;
  std::vector<Vector3> directions;
  if (has_moving_sky(config)) {
    const auto stream = make_stream(config, start_tai_ns);
    const simulate::VoltageRecord shape = stream->make_record();
    jy_per_count2_ = shape.jy_per_count2;
    directions = shape.sources_enu;
    sender_ = std::make_unique<simulate::Mwa32tSender>(stream, to);
  } else {
    const simulate::VoltageRecord record = make_record(config, start_tai_ns);
    jy_per_count2_ = record.jy_per_count2;
    directions = record.sources_enu;
    sender_ = std::make_unique<simulate::Mwa32tSender>(record, to);
  }
  for (std::size_t k = 0; k < directions.size(); ++k) {
    if (directions[k][2] >= 0) marks_.push_back({directions[k], config.simulator.sources[k].name});
  }
}

namespace {

/// The datagrams that would be sent, as fast as they can be made.
SimulatedFile write_packets(const ObservationConfig& config, const std::string& path) {
  ObservationConfig unpaced = config;
  unpaced.simulator.speed = 0;
  simulate::PacketFile file(path, simulation_start_tai_ns(config));
  const auto simulation = make_simulation(
      unpaced, [&](double seconds, const Endpoint& to, std::span<const std::byte> packet) {
        file.add(seconds, to, packet);
      });
  simulation->sender().start();
  simulation->sender().join();
  file.publish();
  SimulatedFile written;
  written.n_packets = file.n_packets();
  return written;
}

SimulatedFile write_samples(const ObservationConfig& config, const std::string& path) {
  const auto n = static_cast<std::int64_t>(
      std::llround(config.simulator.duration_s * live_sample_rate(config).value()));
  if (has_moving_sky(config)) {
    const auto stream = make_stream(config, simulation_start_tai_ns(config));
    simulate::write_interleaved_file(*stream, path, n);
    const simulate::VoltageRecord shape = stream->make_record();
    return {n, shape.n_inputs, shape.jy_per_count2};
  }
  const simulate::VoltageRecord record = make_record(config, simulation_start_tai_ns(config));
  simulate::write_interleaved_file(record, path, n);
  return {n, record.n_inputs, record.jy_per_count2};
}

}  // namespace

SimulatedFile write_simulated_file(const ObservationConfig& config, const std::string& path) {
  if (path.ends_with(".pcap")) return write_packets(config, path);
  if (send_impairments(config.simulator).any())
    throw ConfigError(path +
                      ": loss, order, duplicates and steps of the clock are of packets, and this "
                      "file holds samples; a name that ends in .pcap keeps packets");
  const std::string& format = config.source.format;
  if (format == "chips" || format == "tbf" || format == "tbx")
    return write_simulated_spectra(config, path);
  if (config.source.format == "mwa32t") return write_samples(config, path);
  throw UnsupportedError(
      "`ryle simulate -o` writes samples of mwa32t and frames of tbf and tbx; "
      "packets of " +
      config.source.format + " go into a name that ends in .pcap, or are sent without -o");
}

}  // namespace ryle::pipeline
