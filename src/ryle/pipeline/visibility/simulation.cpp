// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/simulation.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/pipeline/visibility/live_spectra.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
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
    if ((source.period_s > 0 || source.dm_pc_cm3 > 0) &&
        (config.source.format != "best2" || source.duration_s <= 0)) {
      throw ConfigError("simulator.source \"" + from.name +
                        "\": period_s and dm_pc_cm3 are of flashes (duration_s > 0) in packets of "
                        "format best2 only");
    }
    scene.sources.push_back(std::move(source));
  }
  return scene;
}

namespace {

simulate::VoltageRecord make_record(const ObservationConfig& config, std::int64_t start_tai_ns) {
  const SampleMetadata metadata = live_sample_metadata(config);
  const ArrayLayout array = load_array(config, metadata.n_inputs);
  simulate::VoltageConfig voltages;
  voltages.n_samples = config.simulator.period_samples;
  voltages.sample_rate_hz = live_sample_rate(config);
  voltages.center_hz = config.source.center_mhz * 1e6;
  voltages.start_tai_ns = start_tai_ns;
  voltages.level_lsb = config.simulator.rms_lsb;
  voltages.n_workers = static_cast<int>(config.runtime.threads);
  voltages.earth_orientation.dut1_s = config.telescope.dut1_s;
  const simulate::Scene scene = make_scene(config, metadata.n_inputs);
  if (std::any_of(scene.sources.begin(), scene.sources.end(), simulate::is_transient)) {
    throw ConfigError(
        "simulator.source.duration_s: flashes are simulated in spectra of an F-engine (chips, tbf, "
        "tbx) only");
  }
  return simulate::simulate_voltages(array, scene, voltages);
}

simulate::SenderConfig sender_config(const ObservationConfig& config) {
  const auto& s = config.simulator;
  simulate::SenderConfig sender;
  sender.endpoints = config.source.listen;
  sender.speed = s.speed;
  sender.duration_s = s.duration_s;
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

bool is_real_time(const ObservationConfig& config) {
  const std::string& kind = config.source.kind;
  return kind == "network" || (kind == "simulator" && !config.simulator.wait_for_run);
}

std::int64_t simulation_start_tai_ns(const ObservationConfig& config) {
  if (config.source.start_utc != "now") return tai_ns_from_utc_iso(config.source.start_utc);
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  return tai_ns_from_unix(now / 1'000'000'000, now % 1'000'000'000);
}

Simulation::Simulation(const ObservationConfig& config, std::int64_t start_tai_ns) {
  const simulate::VoltageRecord record = make_record(config, start_tai_ns);
  jy_per_count2_ = record.jy_per_count2;
  for (std::size_t k = 0; k < record.sources_enu.size(); ++k) {
    marks_.push_back({record.sources_enu[k], config.simulator.sources[k].name});
  }
  sender_ = std::make_unique<simulate::Mwa32tSender>(record, sender_config(config));
}

SimulatedFile write_simulated_file(const ObservationConfig& config, const std::string& path) {
  if (is_live_spectra(config.source)) return write_simulated_spectra(config, path);
  if (config.source.format != "mwa32t")
    throw UnsupportedError("`ryle simulate -o` writes files of mwa32t, tbf and tbx; packets of " +
                           config.source.format + " are sent, without -o");
  const simulate::VoltageRecord record = make_record(config, simulation_start_tai_ns(config));
  const auto n = static_cast<std::int64_t>(
      std::llround(config.simulator.duration_s * live_sample_rate(config).value()));
  simulate::write_interleaved_file(record, path, n);
  return {n, record.n_inputs, record.jy_per_count2};
}

}  // namespace ryle::pipeline
