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
};

/// The sub-command is an observation file written by options.
std::vector<std::string> as_overrides(const CorrelateArguments& a) {
  Overrides set = recording_overrides(a.recording);
  set.flag("output.uvfits", false);
  set.flag("output.uvh5", false);
  set.flag("output.pictures", a.recording.keys.output.pictures);
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
  add_recording_files(*sub, a->recording);
  sub->add_option("-o,--output", a->outputs, "visibility file(s): .ms, .uvfits or .uvh5")
      ->required();
  a->recording.keys.output.pictures = false;
  add_key_options(*sub, a->recording, pipeline::kCorrelateOptions);
  add_recording_options(*sub, a->recording);
  add_key_options(*sub, a->recording, pipeline::kPlaceOptions);
  add_common(*sub, context);
  sub->callback([&context, a] { context.action = [&context, a] { return run(context, *a); }; });
}

}  // namespace ryle::app
