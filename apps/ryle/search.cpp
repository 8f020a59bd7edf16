// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_run.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/ryle/command.hpp"
#include "apps/ryle/key_options.hpp"
#include "apps/ryle/report.hpp"
#include "ryle/core/error.hpp"

namespace ryle::app {
namespace {

using Json = nlohmann::ordered_json;

Json event_json(const SearchCandidate& c) {
  return {{"number", c.number},
          {"time_s", c.time_s},
          {"time_error_s", c.time_error_s},
          {"mjd_utc", c.mjd_utc},
          {"dm_pc_cm3", c.dm_pc_cm3},
          {"dm_error", c.dm_error},
          {"width_s", c.width_s},
          {"width_error_s", c.width_error_s},
          {"snr", c.snr},
          {"snr_boxcar", c.snr_boxcar},
          {"boxcar_samples", c.boxcar_samples},
          {"smearing_s", c.smearing_s},
          {"scattering_s", c.scattering_s},
          {"scattering_error_s", c.scattering_error_s},
          {"members", c.members},
          {"beam", c.beam},
          {"n_beams", c.n_beams},
          {"beams", c.beams},
          {"flags", c.flags},
          {"reasons", c.reasons},
          {"picture", c.picture}};
}

Json summary_json(const pipeline::SearchSummary& s) {
  Json candidates = Json::array(), flagged = Json::array();
  for (const auto& c : s.events) (c.flags.empty() ? candidates : flagged).push_back(event_json(c));
  Json loss = Json::array();
  for (std::size_t k = 0; k < s.loss.size(); ++k)
    loss.push_back({{"width_s", s.loss_widths_s[k]}, {"worst_response", s.loss[k]}});
  Json masked = Json::object();
  for (const auto& [cause, part] : s.description.masked) masked[cause] = part;
  const auto& d = s.description;
  return {{"file", d.file},
          {"plan", d.plan},
          {"n_trials", d.n_trials},
          {"k_dm", d.k_dm},
          {"reference_hz", d.reference_hz},
          {"implementation", d.implementation},
          {"data_s", s.data_s},
          {"elapsed_s", s.elapsed_s},
          {"real_time_factor", s.elapsed_s > 0 ? s.data_s / s.elapsed_s : 0.0},
          {"seconds",
           {{"read", s.read_s},
            {"normalize", s.normalize_s},
            {"dedisperse", s.dedisperse_s},
            {"detect", s.detect_s}}},
          {"memory_bytes", s.memory_bytes},
          {"beams", s.n_beams},
          {"n_tokens", s.n_hits},
          {"n_tokens_dropped", s.n_hits_dropped},
          {"flagged_channels", s.flagged_channels},
          {"masked_samples",
           {{"user", s.normalize.masked_user},
            {"time", s.normalize.masked_time},
            {"absent", s.normalize.masked_absent},
            {"channel", s.normalize.masked_channel},
            {"cell", s.normalize.masked_cell},
            {"kurtosis", s.normalize.masked_kurtosis},
            {"spectra", s.normalize.masked_spectra}}},
          {"masked_fractions", masked},
          {"bursts",
           {{"masked", s.normalize.spectra.n_masked_runs},
            {"kept_as_pulses", s.normalize.spectra.n_pulses_kept},
            {"undecided", s.normalize.spectra.n_undecided}}},
          {"clipped", {{"low", s.normalize.clipped_low}, {"high", s.normalize.clipped_high}}},
          {"loss_of_plan", loss},
          {"candidates", candidates},
          {"flagged", flagged},
          {"products", s.products},
          {"notes", s.notes},
          {"stopped_by_signal", s.stopped},
          {"warnings", s.warnings}};
}

/// One object; of several recordings {"searches": [...]}.
void print_json(const std::vector<pipeline::SearchSummary>& all) {
  Json searches = Json::array();
  for (const auto& s : all) searches.push_back(summary_json(s));
  fmt::print("{}\n",
             all.size() == 1 ? searches.front().dump() : Json{{"searches", searches}}.dump());
}

void print_text(const pipeline::SearchSummary& s) {
  const auto& d = s.description;
  for (const auto& note : s.notes) fmt::print("{}\n", note);
  const std::string beams = s.n_beams > 1 ? fmt::format("{} beams, ", s.n_beams) : std::string();
  fmt::print("{}: {:.3f} s, {}{} channels, {:.3f} .. {:.3f} MHz; {}\n", d.file, s.data_s, beams,
             d.n_channels, d.low_hz * 1e-6, d.high_hz * 1e-6, d.plan);
  fmt::print("loss half way between trials:");
  for (std::size_t k = 0; k < s.loss.size(); ++k)
    fmt::print(" {:.3g} ms {:.1f} %", s.loss_widths_s[k] * 1e3, 100 * (1 - s.loss[k]));
  fmt::print("\n{:.2f} s by {} = {:.1f} x real time; {} channels flagged, {} hits\n", s.elapsed_s,
             d.implementation, s.data_s / s.elapsed_s, s.flagged_channels, s.n_hits);
  std::string masked;
  for (const auto& [cause, part] : s.description.masked)
    if (part > 0) masked += fmt::format(" {} {:.2f} %", cause, 100 * part);
  if (!masked.empty()) fmt::print("masked:{}\n", masked);
  const auto& bursts = s.normalize.spectra;
  if (bursts.n_masked_runs + bursts.n_pulses_kept + bursts.n_undecided > 0)
    fmt::print("bursts: {} masked, {} kept as pulses, {} undecided\n", bursts.n_masked_runs,
               bursts.n_pulses_kept, bursts.n_undecided);
  for (const auto& w : s.warnings) fmt::print("warning: {}\n", w);
  fmt::print(
      "\n  no        time_s           DM     +-   width_ms    S/N  boxcar  arrival at {:.3f} MHz, "
      "k_DM {:.4f}\n",
      d.reference_hz * 1e-6, d.k_dm);
  for (const auto& c : s.events) {
    fmt::print("{:4d} {:13.6f} {:12.3f} {:6.3f} {:10.4g} {:6.1f} {:7.1f}  {}\n", c.number, c.time_s,
               c.dm_pc_cm3, c.dm_error, c.width_s * 1e3, c.snr, c.snr_boxcar,
               c.flags.empty() ? c.picture : "(" + c.flags + ")");
    if (c.scattering_s > 0)
      fmt::print("       scattered: a tail of {:.4g} +- {:.2g} ms at {:.3f} MHz\n",
                 c.scattering_s * 1e3, c.scattering_error_s * 1e3, d.reference_hz * 1e-6);
    if (!c.reasons.empty()) fmt::print("       {}\n", c.reasons);
  }
  fmt::print("{} candidate{}, {} flagged\n", s.n_candidates, s.n_candidates == 1 ? "" : "s",
             static_cast<std::int64_t>(s.events.size()) - s.n_candidates);
}

std::vector<pipeline::SearchSummary> search_with_progress(const Context& context,
                                                          pipeline::SearchOptions& options) {
  TaskProgress progress(context, "search");
  options.on_progress = [&](double data_s, double total_s, std::int64_t) {
    progress.go_on(data_s / total_s);
  };
  return pipeline::search_files(options);
}

}  // namespace

void add_search(CLI::App& app, Context& context) {
  auto* sub =
      app.add_subcommand("search", "find dispersed pulses in a filterbank (SIGPROC or PSRFITS)");
  auto o = std::make_shared<pipeline::SearchOptions>();
  auto files = std::make_shared<std::vector<std::string>>();
  sub->add_option(
         "file", *files,
         ".fil, or search-mode .fits, .sf; several: those that start together are beams of "
         "one recording, those that follow each other in time are searched as one, others "
         "one by one")
      ->required();
  sub->add_option(
      "-o,--output", o->output_directory,
      "directory for candidates, pictures and the database; default: nothing is written");
  sub->add_option("--name", o->name, "of the products; default: that of the file");
  sub->add_flag("--overwrite", o->overwrite, "replace products that are there");
  sub->add_flag("!--no-pictures", o->pictures, "no PNG of each candidate");
  sub->add_option("--key", o->input.keys,
                  "SIGPROC header key Ryle does not know: NAME:TYPE, TYPE i32 i64 f64 u8 string");
  sub->add_option("--pol", o->input.polarization,
                  "of several: I (the first) or XXYY (mean of the first two)");
  sub->add_option_function<std::string>(
         "--device",
         [o](const std::string& name) {
           if (name == "cuda" && o->implementation == "auto") o->implementation = "cuda";
         },
         "of the engines: cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  sub->add_option(
         "--devices", o->devices,
         "CUDA devices that the beams (files) are split over, all of the search on them: 0,1")
      ->delimiter(',')
      ->check(number_in(0, 255));
  sub->add_option("--workers", o->n_workers, "threads; default: all cores")
      ->check(number_in(1, 4096));
  add_common(*sub, context);
  // The engines reject words that they do not know.
  KeyOptions options(*sub, "search", KeyOptions::Checks::numbers);
  pipeline::fields(options, static_cast<pipeline::SearchSettings&>(*o));
  sub->callback([&context, o, files] {
    context.action = [&context, o, files] {
      o->file = files->front();
      o->more_files.assign(files->begin() + 1, files->end());
      o->command_line = context.command_line();
      o->stop = &signal_count();
      const auto all = search_with_progress(context, *o);
      if (context.json) print_json(all);
      for (std::size_t k = 0; k < all.size() && !context.json; ++k) {
        if (k > 0) fmt::print("\n");
        print_text(all[k]);
      }
      return 0;  // stopped, too: what was searched is published (docs/exit-codes.md)
    };
  });
}

}  // namespace ryle::app
