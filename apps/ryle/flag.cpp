// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/ryle/command.hpp"
#include "apps/ryle/report.hpp"
#include "ryle/core/error.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/visibility/visibility_file.hpp"
#include "ryle/pipeline/flag/flag_visibilities.hpp"

namespace ryle::app {
namespace {

struct FlagArguments {
  std::string file;
  std::string output;
  bool overwrite = false;
  pipeline::FlagOptions options;
};

void print_flags(const Context& context, const FlagArguments& a,
                 const pipeline::FlagReport& report) {
  const auto part = [&](std::int64_t n) {
    return static_cast<double>(n) / static_cast<double>(report.n_values);
  };
  if (context.json) {
    nlohmann::ordered_json inputs = nlohmann::ordered_json::array();
    for (const auto& input : report.inputs)
      inputs.push_back({{"antenna", input.antenna},
                        {"pol", input.pol == 0 ? "X" : "Y"},
                        {"row_power", input.ratio}});
    nlohmann::ordered_json json{{"products", {a.output}},
                                {"values", report.n_values},
                                {"flagged_before", part(report.n_before)},
                                {"flagged_inputs", part(report.n_inputs)},
                                {"flagged_interference", part(report.n_interference)},
                                {"inputs", inputs},
                                {"channels", report.channel_fraction},
                                {"implementation", report.implementation},
                                {"notes", report.notes}};
    fmt::print("{}\n", json.dump());
    return;
  }
  fmt::print(
      "{} values: {:.2f} % flagged before, {:.2f} % with {} inputs, {:.2f} % as interference\n",
      report.n_values, 100 * part(report.n_before), 100 * part(report.n_inputs),
      report.inputs.size(), 100 * part(report.n_interference));
  for (const auto& input : report.inputs) {
    fmt::print("  {} {}: {}\n", input.antenna, input.pol == 0 ? "X" : "Y",
               input.ratio > 0 ? fmt::format("{:.3g} times the median power", input.ratio)
                               : std::string("no values"));
  }
  for (std::size_t c = 0; c < report.channel_fraction.size(); ++c) {
    if (report.channel_fraction[c] > 0.5)
      fmt::print("  channel {}: {:.0f} % interference\n", c, 100 * report.channel_fraction[c]);
  }
  for (const auto& note : report.notes) fmt::print("warning: {}\n", note);
  fmt::print("  {}\n", a.output);
}

int run_flag(const Context& context, FlagArguments a) {
  if (!a.options.row_power && !a.options.sum_threshold)
    throw ConfigError("--no-row-power and --no-sum-threshold leave nothing to do");
  require_visibility_suffix(a.output);
  require_all_creatable({a.output}, a.overwrite);
  VisibilityFile file = read_visibility_file(a.file);
  if (file.dumps.empty()) throw FormatError(a.file + ": holds no integration");
  pipeline::FlagReport report;
  {
    TaskProgress progress(
        context, fmt::format("interference on {} baselines", file.dumps.front().n_baselines));
    a.options.go_on = [&](double done) { return progress.go_on(done); };
    report = pipeline::flag_visibilities(file.observation, file.dumps, a.options);
  }
  auto& notes = file.observation.provenance.notes;
  notes["flagged"] =
      fmt::format("{} of {} values with their inputs, {} as interference ({})", report.n_inputs,
                  report.n_values, report.n_interference,
                  report.implementation.empty() ? "not looked for" : report.implementation);
  const auto writer = open_visibility_writer(a.output, file.observation, a.overwrite);
  for (const auto& dump : file.dumps) writer->write(dump);
  writer->publish(file.observation);
  print_flags(context, a, report);
  return 0;
}

}  // namespace

void add_flag(CLI::App& app, Context& context) {
  auto* sub =
      app.add_subcommand("flag", "flag dead and wild inputs and interference in visibilities");
  auto a = std::make_shared<FlagArguments>();
  auto& o = a->options;
  sub->add_option("file", a->file,
                  ".ms, .uvfits, .uvh5, or a description of station matrices (.toml)")
      ->required();
  sub->add_option("-o,--output", a->output, "flagged copy: .ms, .uvfits or .uvh5")->required();
  sub->add_flag("--overwrite", a->overwrite, "replace a file that is there");
  sub->add_flag("!--no-row-power", o.row_power, "keep inputs whatever their power is");
  sub->add_option("--power-below", o.power_below,
                  "flag inputs with less than this part of the median correlated power")
      ->capture_default_str()
      ->check(number_in(0, 1));
  sub->add_option("--power-above", o.power_above, "and with more than this many times of it")
      ->capture_default_str()
      ->check(number_in(1, 1e9));
  sub->add_flag("!--no-sum-threshold", o.sum_threshold, "do not look for interference");
  sub->add_option("--threshold", o.threshold_sigmas,
                  "of single samples, in standard deviations of the noise")
      ->capture_default_str()
      ->check(number_in(0.1, 1000));
  sub->add_option("--max-window", o.max_window, "longest row of samples, a power of 2")
      ->capture_default_str();
  sub->add_option("--implementation", o.implementation, "auto, cpu or reference")
      ->check(CLI::IsMember({"auto", "cpu", "reference"}))
      ->capture_default_str();
  add_common(*sub, context);
  sub->callback(
      [&context, a] { context.action = [&context, a] { return run_flag(context, *a); }; });
}

}  // namespace ryle::app
