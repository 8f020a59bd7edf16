// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>

#include "apps/ryle/command.hpp"
#include "apps/ryle/recording_arguments.hpp"
#include "apps/ryle/report.hpp"
#include "ryle/core/error.hpp"
#include "ryle/pipeline/run/run.hpp"

namespace ryle::app {
namespace {

struct CorrelateArguments {
  RecordingArguments recording;
  std::vector<std::string> outputs;
  double integration_s = 0;
  std::string phase_center;
  std::string fringe_stopping;
  bool pictures = false;
};

/// The sub-command is an observation file written by options.
std::vector<std::string> as_overrides(const CorrelateArguments& a) {
  Overrides set = recording_overrides(a.recording);
  set.flag("output.uvfits", false);
  set.flag("output.uvh5", false);
  set.flag("output.pictures", a.pictures);
  set.number("correlate.integration_s", a.integration_s);
  set.text("correlate.phase_center", a.phase_center);
  set.text("correlate.fringe_stopping", a.fringe_stopping);
  set.texts("output.files", a.outputs);
  const auto parent = std::filesystem::path(a.outputs.front()).parent_path();
  set.text("output.directory", parent.empty() ? "." : parent.string());
  set.text("output.name", std::filesystem::path(a.outputs.front()).stem().string());
  set.add(a.recording.overrides);
  return set.list();
}

int run(const Context& context, const CorrelateArguments& arguments) {
  const auto config =
      pipeline::parse_observation("schema = 1\n", "command line", as_overrides(arguments));
  return run_and_report(context, config, false);
}

}  // namespace

void add_correlate(CLI::App& app, Context& context) {
  auto* sub =
      app.add_subcommand("correlate", "correlate a recording: voltages in, visibilities out");
  auto a = std::make_shared<CorrelateArguments>();
  sub->add_option("file", a->recording.file, "recording")->required();
  add_recording_options(*sub, a->recording);
  add_place_options(*sub, a->recording);
  sub->add_option("-o,--output", a->outputs, "visibility file(s): .ms, .uvfits or .uvh5")
      ->required();
  sub->add_option("--integration", a->integration_s, "length of a dump in seconds");
  sub->add_option("--phase-center", a->phase_center, "zenith (default), sun or RA_DEG,DEC_DEG");
  sub->add_option("--fringe-stopping", a->fringe_stopping, "f, x or none");
  sub->add_flag("--pictures", a->pictures, "write PNG quick-looks beside the output");
  add_common(*sub, context);
  sub->callback([&context, a] { context.action = [&context, a] { return run(context, *a); }; });
}

}  // namespace ryle::app
