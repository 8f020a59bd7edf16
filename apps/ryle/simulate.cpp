// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "apps/ryle/command.hpp"
#include "apps/ryle/log.hpp"
#include "apps/ryle/report.hpp"
#include "ryle/core/error.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "ryle/pipeline/visibility/simulation.hpp"
#include "ryle/simulate/packets.hpp"

namespace ryle::app {
namespace {

struct SimulateArguments {
  std::string observation;
  std::vector<std::string> overrides, simulator;
  std::string file;
  bool overwrite = false;
};

int send(const Context& context, const pipeline::ObservationConfig& config) {
  const auto simulation = pipeline::make_simulation(config);
  simulation->sender().start();
  const auto start = std::chrono::steady_clock::now();
  while (simulation->sender().running()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (signal_count() > 0) simulation->sender().stop();
  }
  const auto report = simulation->sender().join();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  nlohmann::ordered_json receivers = nlohmann::ordered_json::array();
  for (const auto& r : report.receivers) {
    receivers.push_back({{"packets_sent", r.packets_sent},
                         {"samples_sent", r.samples_sent},
                         {"bytes_sent", r.bytes_sent},
                         {"samples_skipped", r.samples_skipped}});
  }
  if (context.json) {
    fmt::print("{}\n",
               nlohmann::ordered_json{
                   {"receivers", receivers}, {"elapsed_s", seconds}, {"cpu_s", report.cpu_s}}
                   .dump());
  } else {
    for (std::size_t r = 0; r < report.receivers.size(); ++r) {
      fmt::print("receiver {}: {} packets, {}\n", r, report.receivers[r].packets_sent,
                 bytes_text(static_cast<double>(report.receivers[r].bytes_sent)));
    }
  }
  return 0;
}

int run(const Context& context, const SimulateArguments& a) {
  const auto config =
      pipeline::load_observation(a.observation, with_simulator_keys(a.overrides, a.simulator));
  if (context.log.empty()) choose_log(config.runtime.log);
  if (a.file.empty()) return send(context, config);
  require_creatable(a.file, a.overwrite);
  const auto written = pipeline::write_simulated_file(config, a.file);
  if (context.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"product", a.file},
                                              {"packets", written.n_packets},
                                              {"samples", written.n_samples},
                                              {"jy_per_count2", written.jy_per_count2}}
                           .dump());
  } else if (written.n_packets > 0) {
    fmt::print("{}: {} packets\n", a.file, written.n_packets);
  } else {
    fmt::print("{}: {} instants of {} inputs; {:g} Jy per count^2\n", a.file, written.n_samples,
               written.n_inputs, written.jy_per_count2);
  }
  return 0;
}

}  // namespace

void add_simulate(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand(
      "simulate", "send the simulated array's packets, or write its samples to a file");
  auto a = std::make_shared<SimulateArguments>();
  sub->add_option("observation", a->observation, "observation file with a [simulator] section")
      ->required();
  sub->add_option("--set", a->overrides, "change a key: section.key=value (repeatable)");
  sub->add_option("--simulate", a->simulator, kSimulatorKeysHelp);
  sub->add_option(
      "-o,--output", a->file,
      "write this file instead of sending: NAME.pcap with the packets of any format, or "
      "samples of mwa32t, frames of tbf and tbx");
  sub->add_flag("--overwrite", a->overwrite, "replace the file");
  add_common(*sub, context);
  sub->callback([&context, a] { context.action = [&context, a] { return run(context, *a); }; });
}

}  // namespace ryle::app
