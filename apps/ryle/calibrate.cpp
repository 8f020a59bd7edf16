// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/calibrate/calibrate_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "apps/ryle/command.hpp"
#include "apps/ryle/recording_arguments.hpp"
#include "apps/ryle/report.hpp"
#include "apps/ryle/visibility_arguments.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/pipeline/run/run.hpp"
#include "ryle/plot/picture.hpp"

namespace ryle::app {
namespace {

struct CalibrateArguments {
  RecordingArguments recording;
  RecordingArguments solver;  // keys of [calibrate] alone
  VisibilityArguments visibilities;
  std::vector<std::string> outputs;
  std::string png;
  std::vector<std::string> given;  // names of the options on the command line
};

/// The observation file that correlates the recording.
pipeline::ObservationConfig correlate_config(const CalibrateArguments& a,
                                             const std::string& output) {
  Overrides set = recording_overrides(a.recording);
  const auto& place = a.visibilities.covariance;
  if (std::isfinite(place.latitude_deg)) set.value("telescope.latitude_deg", place.latitude_deg);
  if (std::isfinite(place.longitude_deg)) set.value("telescope.longitude_deg", place.longitude_deg);
  if (place.height_m != 0) set.value("telescope.height_m", place.height_m);
  set.texts("output.files", {output});
  set.flag("output.pictures", false);
  set.flag("output.uvfits", false);
  set.flag("output.uvh5", false);
  const auto parent = std::filesystem::path(output).parent_path();
  set.text("output.directory", parent.empty() ? "." : parent.string());
  set.text("output.name", std::filesystem::path(output).stem().string());
  set.add(a.recording.overrides);
  return pipeline::parse_observation("schema = 1\n", "command line", set.list());
}

/// The keys of [calibrate], checked.
pipeline::CalibrateConfig solver_settings(const CalibrateArguments& a) {
  Overrides set;
  for (const auto& add : a.solver.options) add(set);
  return pipeline::parse_observation("schema = 1\n", "command line", set.list()).calibrate;
}

void check_calibrate_options(const CalibrateArguments& a, bool visibilities) {
  const std::vector<std::string_view> recording_sections{"source", "channelize", "runtime"};
  const bool pair = !a.visibilities.imaginary.empty();
  if (!pair) reject_options(a.given, pair_options(), "is of a covariance pair (--imag FILE)");
  if (pair) reject_options(a.given, {"--column"}, "is of a Measurement Set");
  if (visibilities) {
    reject_options(a.given, option_names(pipeline::kRecordingOptions, recording_sections),
                   "is of voltages; visibilities say it themselves");
    reject_options(a.given, {"--set"}, "is of voltages: keys of the run that correlates them");
    if (!pair)
      reject_options(a.given, option_names(pipeline::kPlaceOptions, {"telescope"}),
                     "has no effect: visibility files say where their array is");
    if (a.recording.files.size() > 1)
      throw ConfigError(a.recording.files[1] + ": one file of visibilities at a time");
  } else {
    reject_options(a.given, {"--conjugate", "--column"},
                   "is of visibilities; this is a recording of voltages");
  }
}

/// A file beside the first output that is gone when this is.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& beside)
      : path_((std::filesystem::path(beside).parent_path() /
               fmt::format(".{}.{}.uvh5", std::filesystem::path(beside).stem().string(), getpid()))
                  .string()) {}
  ~TemporaryFile() {
    std::error_code error;
    std::filesystem::remove(path_, error);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Visibilities of a recording, by the correlator, with the cables of its station file taken out.
VisibilityFile correlated(const Context& context, const CalibrateArguments& a) {
  const TemporaryFile file(a.outputs.empty() ? a.png : a.outputs.front());
  pipeline::RunOptions options;
  options.command_line = context.command_line();
  options.stop = &signal_count();
  ProgressPrinter progress(context);
  options.on_progress = [&](const pipeline::Progress& p) { progress.show(p); };
  const auto summary = pipeline::run_file(correlate_config(a, file.path()), options);
  progress.finish();
  if (!summary.errors.empty()) throw FormatError(summary.errors.front());
  if (summary.products.empty())
    throw FormatError(a.recording.files[0] + ": no visibilities were made of it" +
                      (summary.not_made.empty() ? "" : ": " + summary.not_made.front()));
  VisibilityFile visibilities = read_visibility_file(file.path());
  const std::string left_out =
      leave_out(visibilities.observation, visibilities.dumps, a.visibilities.dead);
  if (!left_out.empty()) visibilities.observation.provenance.notes["antennas left out"] = left_out;
  return visibilities;
}

/// 0 of calibrate.channels_per_gain: all where only tables without frequencies are written.
std::int64_t channels_per_gain(const CalibrateArguments& a, std::int64_t wanted) {
  const bool keeps_frequencies =
      std::any_of(a.outputs.begin(), a.outputs.end(), [](const std::string& output) {
        return lower_case(std::filesystem::path(output).extension().string()) != ".csv";
      });
  return wanted > 0 ? wanted : keeps_frequencies ? 1 : 0;
}

void print_report(const pipeline::CalibrateReport& report, const VisibilityFile& file,
                  const std::vector<std::string>& products) {
  fmt::print("model: {}\n", report.table.model);
  for (const auto& [name, factor] : report.flux_factors)
    fmt::print("  {}: {:.4g} x the flux of the model\n", name, factor);
  for (const auto& set : report.sets) {
    fmt::print("{}{} of {} antennas, {} of {} solutions, at most {} rounds, by {}\n",
               set.name.empty() ? "" : set.name + ": ", set.n_inputs,
               file.observation.array.n_antennas(), set.n_converged, set.n_solutions,
               set.max_rounds, report.implementation);
    fmt::print(
        "  phases {:.1f} deg rms, amplitudes {:.1f} % rms; error {:.2g} deg ({:.2g} "
        "predicted{}), {:.2g} deg by two halves of the baselines\n",
        set.phase_rms_deg, 100 * set.amplitude_rms, set.sigma_deg, set.predicted_sigma_deg,
        set.full_bound ? "" : ", of independent noise", set.halves_deg);
  }
  fmt::print("phase of {} = 0; amplitudes {}\n", report.reference,
             report.table.flux_unit.empty() ? "relative: no flux of the model is known"
                                            : "to " + report.table.flux_unit);
  if (!report.dropped.empty()) {
    fmt::print("{} inputs left out:\n", report.dropped.size());
    for (const auto& d : report.dropped)
      fmt::print("  {}{}: {}\n", d.name, d.set.empty() ? "" : " " + d.set,
                 pipeline::reason_text(d));
  }
  for (const auto& line : assumptions(file)) fmt::print("{}\n", line);
  for (const auto& n : report.notes) fmt::print("left out: {}\n", n);
  for (const auto& w : report.warnings) fmt::print("warning: {}\n", w);
  for (const auto& p : products) fmt::print("  {}\n", p);
}

int run_calibrate(const Context& context, const CalibrateArguments& a) {
  if (a.outputs.empty() && a.png.empty())
    throw ConfigError("nothing to write: give -o gains.h5, -o gains.csv or --png FILE.png");
  for (const std::string& output : a.outputs) require_gain_suffix(output, "-o");
  require_picture(a.png, "--png");
  const bool overwrite = a.recording.keys.output.overwrite;
  std::vector<std::string> names = a.outputs;
  names.push_back(a.png);
  require_all_creatable(names, overwrite);
  const bool visibilities = is_visibilities(a.recording, a.visibilities);
  check_calibrate_options(a, visibilities);
  const auto settings = solver_settings(a);
  VisibilityFile file = visibilities ? read_visibilities(a.recording.files[0], a.visibilities)
                                     : correlated(context, a);
  file.observation.provenance.command_line = context.command_line();
  const auto report = pipeline::calibrate_visibilities(
      settings, file, channels_per_gain(a, settings.channels_per_gain), 0);
  std::vector<std::string> products;
  for (const std::string& output : a.outputs) {
    write_gain_table(output, report.table, overwrite);
    products.push_back(output);
  }
  if (!a.png.empty()) {
    pipeline::write_gain_picture(a.png, report, overwrite);
    products.push_back(a.png);
  }
  if (context.json)
    fmt::print("{}\n", pipeline::to_json(report, products));
  else
    print_report(report, file, products);
  return 0;
}

}  // namespace

void add_calibrate(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand(
      "calibrate", "gains of antennas from visibilities, or a recording, and a sky model");
  auto a = std::make_shared<CalibrateArguments>();
  sub->add_option("file", a->recording.files,
                  "visibilities: .ms, .uvfits, .uvh5, or the real part of a covariance FITS pair; "
                  "or recording(s) of voltages (with --station or --layout)")
      ->required();
  sub->add_option("-o,--output", a->outputs, "table(s) of gains: .h5 (CalH5) or .csv");
  sub->add_option("--png", a->png, "picture of amplitudes, phases, residuals (.png, .pdf, .svg)");
  add_key_options(*sub, a->solver, pipeline::kCalibrateOptions);
  add_recording_options(*sub, a->recording);
  add_visibility_options(*sub, a->visibilities);
  add_common(*sub, context);
  sub->callback([&context, sub, a] {
    for (const auto* option : sub->get_options())
      if (option->count() > 0) a->given.push_back(option->get_name());
    context.action = [&context, a] { return run_calibrate(context, *a); };
  });
}

}  // namespace ryle::app
