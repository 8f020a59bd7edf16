// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/ryle/command.hpp"
#include "apps/ryle/report.hpp"
#include "ryle/pipeline/search/search_fold.hpp"

namespace ryle::app {
namespace {

void print(const Context& context, const pipeline::FoldSummary& s) {
  if (context.json) {
    const nlohmann::ordered_json json{{"source", s.source_name},
                                      {"period_s", s.period_s},
                                      {"predicted_period_s", s.predicted_period_s},
                                      {"shortest_period_s", s.shortest_s},
                                      {"longest_period_s", s.longest_s},
                                      {"at_edge", s.at_edge},
                                      {"reduced_chi2", s.reduced_chi2},
                                      {"bins", s.fold.config.n_bins},
                                      {"duration_s", s.duration_s},
                                      {"samples", s.n_samples},
                                      {"start_mjd_utc", s.start_mjd_utc},
                                      {"profile", s.fold.profile()},
                                      {"products", s.products},
                                      {"warnings", s.warnings}};
    fmt::print("{}\n", json.dump());
    return;
  }
  fmt::print("{}: period {:.9f} s (topocentric), reduced chi2 {:.1f} of {} bins, {:.3f} s\n",
             s.source_name, s.period_s, s.reduced_chi2, s.fold.config.n_bins, s.duration_s);
  if (s.predicted_period_s > 0) fmt::print("  by the ephemeris {:.9f} s\n", s.predicted_period_s);
  for (const auto& w : s.warnings) fmt::print("warning: {}\n", w);
  for (const auto& p : s.products) fmt::print("  {}\n", p);
}

}  // namespace

void add_fold(CLI::App& app, Context& context) {
  auto* sub =
      app.add_subcommand("fold", "fold a time series or a filterbank at the period of a pulsar");
  auto o = std::make_shared<pipeline::FoldOptions>();
  sub->add_option("file", o->file, "SIGPROC .tim or .fil, search-mode PSRFITS")->required();
  sub->add_option("--par", o->par,
                  "ephemeris of an isolated pulsar (PSR RAJ DECJ F0 or P0 PEPOCH DM ...)");
  sub->add_option("--period", o->period_s, "instead: seconds, topocentric")
      ->check(number_above_zero());
  sub->add_option("--pdot", o->period_derivative, "period derivative, s/s")
      ->check(number_in(-1, 1));
  sub->add_option("--dm", o->dm_pc_cm3, "of a filterbank, pc/cm3; default with --par: its own")
      ->check(number_from_zero());
  sub->add_option("--k-dm", o->k_dm, "dispersion constant")->capture_default_str();
  sub->add_option("--bins", o->n_bins, "of the profile")
      ->capture_default_str()
      ->check(number_in(2, 65536));
  sub->add_flag("!--no-search", o->search, "fold at exactly this period");
  sub->add_option("--drift", o->drift_turns,
                  "search periods that drift by so many turns within the file")
      ->capture_default_str()
      ->check(number_from_zero());
  sub->add_option("-o,--output", o->outputs.text, "profile as text");
  sub->add_option("--fits", o->outputs.fits,
                  "FITS tables: sub-integrations x channels x bins, profile");
  sub->add_option("--png", o->outputs.picture,
                  "picture of sub-integrations and profile (.png, .pdf, .svg)");
  sub->add_flag("--overwrite", o->outputs.overwrite, "replace products that are there");
  sub->add_option("--key", o->input.keys, "SIGPROC header key Ryle does not know: NAME:TYPE");
  sub->add_option("--pol", o->input.polarization, "of several: I or XXYY");
  add_common(*sub, context);
  sub->callback([&context, o] {
    context.action = [&context, o] {
      o->command_line = context.command_line();
      print(context, pipeline::fold_file(*o));
      return 0;
    };
  });
}

}  // namespace ryle::app
