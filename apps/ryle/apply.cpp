// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/ryle/command.hpp"
#include "apps/ryle/report.hpp"
#include "apps/ryle/visibility_arguments.hpp"
#include "ryle/core/error.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/pipeline/calibrate/apply_gains.hpp"

namespace ryle::app {
namespace {

struct ApplyArguments {
  std::string file, gains, output;
  VisibilityArguments visibilities;
  bool overwrite = false;
};

int run_apply(const Context& context, const ApplyArguments& a) {
  require_visibility_suffix(a.output);
  require_creatable(a.output, a.overwrite);
  VisibilityFile file = read_visibilities(a.file, a.visibilities);
  const GainTable table = pipeline::gains_for(a.gains, file.observation);
  const auto applied = pipeline::apply_gains(file, table);
  file.observation.provenance.command_line = context.command_line();
  const auto writer = open_visibility_writer(a.output, file.observation, a.overwrite);
  for (const auto& dump : file.dumps) writer->write(dump);
  writer->publish(file.observation);
  if (context.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"products", {a.output}},
                                              {"table_id", applied.table_id},
                                              {"unit", file.observation.flux_unit},
                                              {"n_values", applied.n_values},
                                              {"n_flagged", applied.n_flagged},
                                              {"warnings", applied.warnings}}
                           .dump());
    return 0;
  }
  fmt::print("{} values divided by the gains of table {}\n", applied.n_values, applied.table_id);
  if (applied.n_flagged > 0)
    fmt::print("{} values flagged: a gain of theirs is missing\n", applied.n_flagged);
  for (const auto& w : applied.warnings) fmt::print("warning: {}\n", w);
  fmt::print("  {}\n", a.output);
  return 0;
}

}  // namespace

void add_apply(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand("apply", "divide gains out of visibilities");
  auto a = std::make_shared<ApplyArguments>();
  sub->add_option("file", a->file, "visibilities: .ms, .uvfits, .uvh5, or a covariance FITS pair")
      ->required();
  sub->add_option("--gains", a->gains, "table of `ryle calibrate`: .h5 (CalH5) or .csv")
      ->required();
  sub->add_option("-o,--output", a->output, "visibilities: .ms, .uvfits or .uvh5")->required();
  sub->add_flag("--overwrite", a->overwrite, "replace files of the same name");
  add_visibility_options(*sub, a->visibilities);
  add_common(*sub, context);
  sub->callback(
      [&context, a] { context.action = [&context, a] { return run_apply(context, *a); }; });
}

}  // namespace ryle::app
