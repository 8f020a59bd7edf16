// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "apps/ryle/command.hpp"
#include "apps/ryle/grid_report.hpp"
#include "apps/ryle/report.hpp"
#include "ryle/core/angle.hpp"
#include "ryle/core/error.hpp"
#include "ryle/pipeline/grid/grid_scans.hpp"

namespace ryle::app {
namespace {

struct GridArguments {
  pipeline::GridOptions options;
  std::string beam, precision = "f32", hdf5, shard, device = "auto";
  std::vector<std::string> select;
  double memory_gib = 0;
  bool dry_run = false;
};

// "lon=/ra,lat=/dec,data=/Ta"
void name_sets(const std::string& text, ScanOptions& scans) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    const auto equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (value.empty() || (key != "lon" && key != "lat" && key != "data"))
      throw ConfigError("--hdf5 \"" + word +
                        "\" is not understood; lon=/NAME,lat=/NAME,data=/NAME works");
    (key == "lon" ? scans.longitude : key == "lat" ? scans.latitude : scans.data) = value;
    at = end + 1;
  }
}

void choose_shard(const std::string& text, pipeline::GridOptions& options) {
  if (text.empty()) return;
  char rest = 0;
  long long shard = 0, n = 0;
  if (std::sscanf(text.c_str(), "%lld/%lld%c", &shard, &n, &rest) != 2)
    throw ConfigError("--shard \"" + text + "\" is none; 3/16 is the third of sixteen");
  options.shard = shard;
  options.n_shards = n;
}

// A device is an implementation and its number; the implementation may say more.
void choose_device(const std::string& name, pipeline::GridOptions& options) {
  const bool on_cuda = options.implementation.starts_with("cuda");
  if (name == "cpu" && (on_cuda || !options.devices.empty()))
    throw ConfigError("--device cpu and CUDA devices exclude each other");
  if (name == "cpu" && options.implementation == "auto") options.implementation = "cpu";
  int device = 0;
  char rest = 0;
  const int n_read = std::sscanf(name.c_str(), "cuda:%d%c", &device, &rest);
  if (name == "cuda" || n_read == 1) {
    if (n_read == 1 && !options.devices.empty())
      throw ConfigError("--device " + name + " and --devices exclude each other");
    if (n_read == 1) options.devices = {device};
  } else if (name != "auto" && name != "cpu") {
    throw ConfigError("--device \"" + name + "\" is none; auto, cpu and cuda:N work");
  }
  if (name != "cuda" && options.devices.empty()) return;
  if (options.implementation == "auto") options.implementation = "cuda";
  if (!options.implementation.starts_with("cuda"))
    throw ConfigError("--implementation " + options.implementation + " runs on no CUDA device");
}

// `ryle grid A B` begins with names; they may have been meant for `merge` only.
void understand(GridArguments& a, const Context& context) {
  if (a.options.files.empty())
    throw Error(ExitCode::usage, "ryle grid needs files of scans, or `merge` and files of sums");
  const std::string& first = a.options.files.front();
  const bool is_word = first.find_first_of("./") == std::string::npos;
  if (a.options.files.size() > 1 && is_word && !std::filesystem::exists(first))
    throw Error(ExitCode::usage, "there is no file \"" + first +
                                     "\" and no such command of ryle grid; did you mean \"ryle "
                                     "grid merge\"?");
  if (!a.beam.empty()) {
    const auto beam_rad = parse_angle_rad(a.beam);
    if (!beam_rad || !(*beam_rad > 0))
      throw ConfigError("--beam \"" + a.beam + "\" is no width with a unit, such as 2.9arcmin");
    a.options.beam_fwhm_rad = *beam_rad;
  }
  if (a.precision != "f32" && a.precision != "f64")
    throw ConfigError("--precision is f32 or f64, not \"" + a.precision + "\"");
  a.options.precision = a.precision == "f64" ? grid::Precision::f64 : grid::Precision::f32;
  name_sets(a.hdf5, a.options.scans);
  for (const std::string& choice : a.select) {
    const auto equals = choice.find('=');
    if (equals == std::string::npos || equals == 0)
      throw ConfigError("--select \"" + choice + "\" is not COLUMN=value, such as IFNUM=0");
    a.options.scans.select.emplace_back(choice.substr(0, equals), choice.substr(equals + 1));
  }
  choose_shard(a.shard, a.options);
  choose_device(a.device, a.options);
  if (a.options.resume && a.options.checkpoint.empty() && a.options.accumulate.empty() &&
      !a.options.output.empty())
    a.options.checkpoint =
        std::filesystem::path(a.options.output).replace_extension(".rgrid").string();
  a.options.memory_bytes = static_cast<std::int64_t>(a.memory_gib * (1 << 30));
  a.options.command_line = context.command_line();
  a.options.stop = &signal_count();
}

int run_grid(const Context& context, GridArguments a) {
  understand(a, context);
  if (a.dry_run) {
    print_grid_plan(context, pipeline::plan_grid(a.options));
    return 0;
  }
  GridProgressBar bar(context);
  a.options.on_progress = [&](const pipeline::GridProgress& p) { bar.show(p); };
  a.options.on_plan = [&](const pipeline::GridPlan& p) {
    bar.finish();
    announce_grid_plan(context, p);
  };
  const auto summary = pipeline::grid_scans(a.options);
  bar.finish();
  std::string sums = a.options.accumulate.empty() ? a.options.checkpoint : a.options.accumulate;
  return report_grid(context, summary, a.options.files, sums);
}

int run_merge(const Context& context, pipeline::GridMergeOptions options) {
  options.command_line = context.command_line();
  options.stop = &signal_count();
  GridProgressBar bar(context);
  options.on_progress = [&](const pipeline::GridProgress& p) { bar.show(p); };
  const auto summary = pipeline::merge_grids(options);
  bar.finish();
  return report_grid(context, summary, options.files, "");
}

void add_input_options(CLI::App& sub, GridArguments& a) {
  auto& o = a.options;
  sub.add_option("SCANS", o.files,
                 "files of scans: HDF5, SDFITS, FITS tables, .npz; one map of all");
  sub.add_option("--hdf5", a.hdf5, "data sets of an HDF5 file: lon=/ra,lat=/dec,data=/Ta");
  sub.add_option("--ra-unit", o.scans.longitude_unit,
                 "of longitudes, whatever the files say: hours or deg (default: theirs, else deg)");
  sub.add_flag_callback(
      "--hours", [&o] { o.scans.longitude_unit = "hours"; }, "the same as --ra-unit hours");
  sub.add_option("--unit", o.unit,
                 "of the values, such as K or Jy/beam, where files do not say or are wrong");
  sub.add_option("--weights", o.scans.weights,
                 "what a sample counts: none, tsys, radiometer, column:NAME (of samples or of all "
                 "their channels)")
      ->capture_default_str();
  sub.add_option(
      "--flags", o.scans.flags,
      "data set or column of flags, or none (default: flag, flags, flagged, mask, is_rfi "
      "where they are there)");
  sub.add_option("--pol", o.scans.polarization,
                 "mean of two, or one (0, 1, XX, YY, LL, RR, I), or several with a STOKES axis: "
                 "XX,YY or all")
      ->capture_default_str();
  sub.add_option("--gains", o.gains,
                 "text with a row a beam, \"M01 16.02\" (K/Jy), by which temperatures are divided");
  sub.add_option("--select", a.select,
                 "only rows where COLUMN=value, such as IFNUM=0 (repeatable)");
  sub.add_option("--object", o.object,
                 "name of what is mapped, for header and picture; default: as the file says");
  sub.add_option("--channels", o.channels,
                 "100:200 (the last left out) or 1419MHz:1422MHz; default: all");
}

void add_map_options(CLI::App& sub, GridArguments& a) {
  auto& o = a.options;
  sub.add_option("--target", o.target,
                 "auto, a FITS file with the map to make, \"center=70.04,36.29 size=55x10deg "
                 "cell=2arcmin proj=SIN frame=icrs\", healpix:nside=2048, sightlines:FILE.csv")
      ->capture_default_str();
  sub.add_option("--kernel", o.kernel,
                 "convolution function: gauss, gauss:1.5arcmin, jinc, sinc, ellipse, mean, "
                 "table:FILE, median, wmedian, with widths")
      ->capture_default_str();
  sub.add_option("--beam", a.beam, "FWHM of the telescope's beam, such as 2.9arcmin");
  sub.add_option("--normalize", o.normalize,
                 "auto: values per beam become those of the map's beam; none; beam: values are "
                 "those of a point source in the pixel")
      ->capture_default_str();
  sub.add_option("--precision", a.precision, "f32 or f64, of positions and sums")
      ->capture_default_str();
  sub.add_option("--implementation", o.implementation,
                 "auto, reference, cpu, cpu:avx512, ..., cuda")
      ->capture_default_str();
  sub.add_option("--device", a.device, "cpu or cuda:N; auto: a device where CPUs take long")
      ->capture_default_str();
  sub.add_option("--devices", o.devices,
                 "CUDA devices that channels, then tiles of the map are split over: 0,1")
      ->delimiter(',');
}

void add_run_options(CLI::App& sub, GridArguments& a) {
  auto& o = a.options;
  sub.add_option("--memory", a.memory_gib,
                 "most memory for data and sums, GiB (default: half of what is free)");
  sub.add_option("--block-samples", o.block_samples, "samples gridded at a time")
      ->capture_default_str();
  sub.add_option("--accumulate", o.accumulate,
                 "NAME.rgrid: add to its sums, if it is there, and keep the sums there");
  sub.add_option("--checkpoint", o.checkpoint,
                 "NAME.rgrid: keep sums there while the run lasts, for --resume");
  sub.add_flag("--resume", o.resume, "go on from the file of sums (default: beside the output)");
  sub.add_option("--checkpoint-interval", o.checkpoint_interval_s, "seconds between its writings")
      ->capture_default_str();
  sub.add_option("--shard", a.shard,
                 "3/16: the third of sixteen runs of the same scans: channels, or, where those are "
                 "fewer, blocks of samples");
  sub.add_flag("--dry-run", a.dry_run, "print the memory a run needs and end");
}

// What `ryle grid` and `ryle grid merge` write.
template <class Options>
void add_product_options(CLI::App& sub, Options& o) {
  sub.add_option("-o,--output", o.output,
                 "FITS cube; NAME.weight.fits and NAME.count.fits beside it");
  sub.add_option("--png", o.picture, "picture of the mean over the channels (.png, .pdf, .svg)");
  sub.add_option("--min-count", o.finish.min_count, "fewest samples behind a pixel")
      ->capture_default_str();
  sub.add_option("--min-weight", o.finish.min_weight, "least weight behind a pixel")
      ->capture_default_str();
  sub.add_flag("--noise", o.noise, "NAME.noise.fits too");
  sub.add_flag("--one-file", o.one_file, "weights, counts and noise as extensions of the output");
  sub.add_flag("--velocity", o.velocity_axis, "radio velocity in place of frequency");
  sub.add_option("--workers", o.n_workers, "threads; 0 = all cores")->capture_default_str();
  sub.add_flag("--overwrite", o.overwrite, "replace existing files");
}

}  // namespace

void add_grid(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand("grid", "single-dish scans to maps and cubes");
  auto a = std::make_shared<GridArguments>();
  add_input_options(*sub, *a);
  add_map_options(*sub, *a);
  add_product_options(*sub, a->options);
  add_run_options(*sub, *a);
  add_common(*sub, context);
  auto* merge = sub->add_subcommand("merge", "the map of several files of sums (--accumulate)");
  auto m = std::make_shared<pipeline::GridMergeOptions>();
  merge->add_option("SUMS", m->files, "NAME.rgrid ...")->required();
  merge->add_option("--accumulate", m->accumulate, "NAME.rgrid: keep the sums of all");
  merge->add_flag("--partial", m->partial,
                  "a map without the shards and samples that are missing, which it names");
  add_product_options(*merge, *m);
  add_common(*merge, context);
  sub->callback([a, m, merge, &context] {
    if (merge->parsed())
      context.action = [m, &context] { return run_merge(context, *m); };
    else
      context.action = [a, &context] { return run_grid(context, *a); };
  });
}

}  // namespace ryle::app
