// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/run/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdio>

#include "apps/ryle/command.hpp"
#include "apps/ryle/report.hpp"
#include "ryle/core/error.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/pipeline/run/plan.hpp"

namespace ryle::app {
namespace {

struct RunArguments {
  std::string observation;
  std::vector<std::string> overrides, simulator;
  bool simulate = false;
  std::string output;
  std::vector<int> devices;
  std::string graph;
  bool check = false;
  bool print_config = false;
  bool allow_small_rcvbuf = false;
  bool strict = false;
  bool overwrite = false;
};

int run(const Context& context, const RunArguments& arguments) {
  std::vector<std::string> overrides =
      with_simulator_keys(arguments.overrides, arguments.simulator);
  if (arguments.simulate) overrides.emplace_back("source.kind=\"simulator\"");
  if (!arguments.output.empty()) overrides.push_back("output.directory=" + arguments.output);
  if (!arguments.devices.empty())
    overrides.push_back(fmt::format("runtime.devices=[{}]", fmt::join(arguments.devices, ",")));
  if (arguments.allow_small_rcvbuf) overrides.emplace_back("source.allow_small_rcvbuf=true");
  if (arguments.overwrite) overrides.emplace_back("output.overwrite=true");
  const auto config = pipeline::load_observation(arguments.observation, overrides);
  if (arguments.print_config) {
    std::fputs(config.text.c_str(), stdout);
    return 0;
  }
  if (!arguments.graph.empty()) {
    require_ending(arguments.graph, "--graph", {".svg"});
    require_creatable(arguments.graph, true);
    publish_bytes(arguments.graph, pipeline::to_svg(pipeline::make_plan(config)), true);
    return 0;
  }
  if (arguments.check) {
    const auto plan = pipeline::make_plan(config);
    std::fputs((context.json ? pipeline::to_json(plan) + "\n" : pipeline::to_text(plan)).c_str(),
               stdout);
    return 0;
  }
  return run_and_report(context, config, arguments.strict);
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand(
      "run", "run an observation file: packets in, visibilities and pictures out");
  auto arguments = std::make_shared<RunArguments>();
  sub->add_option("observation", arguments->observation, "observation file (TOML)")->required();
  sub->add_option("--set", arguments->overrides, "change a key: section.key=value (repeatable)");
  auto* simulate = sub->add_option(
      "--simulate", arguments->simulator,
      std::string("put the simulator in the place of the array, with ") + kSimulatorKeysHelp);
  sub->add_option("-o,--output", arguments->output, "directory for the products");
  sub->add_option("--devices", arguments->devices,
                  "CUDA devices that beams and their search, or channels, are split over: 0,1")
      ->delimiter(',');
  sub->add_flag("--check", arguments->check, "validate, print the plan and stop");
  sub->add_option("--graph", arguments->graph,
                  "draw the nodes of the run and their margins as SVG, and stop");
  sub->add_flag("--print-config", arguments->print_config,
                "print every key with its value and stop");
  sub->add_flag("--allow-small-rcvbuf", arguments->allow_small_rcvbuf,
                "start although the kernel grants too small a socket buffer");
  sub->add_flag("--overwrite", arguments->overwrite, "replace products of the same name");
  sub->add_flag("--strict", arguments->strict,
                "exit 1 when samples, inputs, chunks or integrations were lost");
  add_common(*sub, context);
  sub->callback([&context, arguments, simulate] {
    arguments->simulate = simulate->count() > 0;
    context.action = [&context, arguments] { return run(context, *arguments); };
  });
}

}  // namespace ryle::app
