// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/ryle/command.hpp"
#include "apps/ryle/key_options.hpp"
#include "apps/ryle/log.hpp"
#include "apps/ryle/recording_arguments.hpp"
#include "apps/ryle/report.hpp"
#include "apps/ryle/visibility_arguments.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/image/statistics.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/visibility/covariance.hpp"
#include "ryle/io/visibility/described_visibilities.hpp"
#include "ryle/io/visibility/gain_file.hpp"
#include "ryle/io/visibility/visibility_file.hpp"
#include "ryle/pipeline/image/sky_products.hpp"
#include "ryle/pipeline/image/visibility_imaging.hpp"
#include "ryle/pipeline/run/run.hpp"
#include "ryle/pipeline/visibility/imaging.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "ryle/plot/picture.hpp"
#include "ryle/plot/sky.hpp"

namespace ryle::app {
namespace {

struct ImageArguments {
  RecordingArguments recording;
  pipeline::SkySettings sky;
  std::string watch, gains;
  VisibilityArguments visibilities;
  std::string phase_center;
  std::string output;
  std::string png;
  std::string psf;
  std::string scale;  // of a pixel
  std::string weight = "natural";
  std::int64_t n_pixels = 0;
  pipeline::ImagingOptions imaging;
  std::vector<std::string> given;  // names of the options on the command line
};

constexpr std::int64_t kSkyPixels = 128;
constexpr std::int64_t kSamplePixels = 256;

bool is_given(const ImageArguments& a, const std::string& option) {
  return std::find(a.given.begin(), a.given.end(), option) != a.given.end();
}

bool is_visibilities(const ImageArguments& a) {
  return is_visibilities(a.recording, a.visibilities);
}

/// One picture about the phase center of visibilities, not all-sky images of their integrations.
bool is_sample_image(const ImageArguments& a) {
  return !is_given(a, "--path") ||
         (a.sky.path != "auto" && image::sample_path_named(a.sky.path).has_value());
}

/// "3amin", "20asec", "0.05deg": radians.
double pixel_scale_rad(const std::string& text) {
  std::size_t end = 0;
  double value = 0;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  const std::string unit = text.substr(end);
  const double degrees = unit == "asec" ? 1.0 / 3600 : unit == "amin" ? 1.0 / 60 : 1.0;
  const bool known = unit == "asec" || unit == "amin" || unit == "deg";
  if (end == 0 || !known || !(value > 0) || !std::isfinite(value)) {
    throw ConfigError("--scale " + text +
                      ": the size of a pixel is a number with its unit: 20asec, 3amin, 0.05deg");
  }
  return value * degrees * kDegree_rad;
}

// "83.63", "-10", "FRB=83.63": the RA of a direction written with a comma.
bool ends_in_angle(const std::string& word) {
  const auto equals = word.find('=');
  const auto at = word.find_first_not_of(' ', equals == std::string::npos ? 0 : equals + 1);
  return at != std::string::npos && word.find('/') == std::string::npos &&
         (std::isdigit(static_cast<unsigned char>(word[at])) != 0 || word[at] == '-' ||
          word[at] == '+');
}

// Targets are parted by commas, and so are RA and DEC: two angles in a row are one target.
std::vector<std::string> words(const std::string& list) {
  std::vector<std::string> result;
  std::string word;
  bool open = false;  // the last word waits for its DEC
  std::istringstream in(list);
  while (std::getline(in, word, ',')) {
    word = std::string(trimmed(word));
    if (word.empty()) continue;
    const bool angle = ends_in_angle(word);
    if (open && angle) {
      result.back() += "," + word;
      open = false;
    } else {
      result.push_back(word);
      open = angle;
    }
  }
  return result;
}

/// The options as the [image] section of an observation file.
pipeline::ObservationConfig sky_config(const ImageArguments& a) {
  Overrides set = recording_overrides(a.recording);
  const auto& place = a.visibilities.covariance;
  if (std::isfinite(place.latitude_deg)) set.value("telescope.latitude_deg", place.latitude_deg);
  if (std::isfinite(place.longitude_deg)) set.value("telescope.longitude_deg", place.longitude_deg);
  if (place.height_m != 0) set.value("telescope.height_m", place.height_m);
  set.add(pipeline::overrides_of(a.sky));
  set.texts("image.watch", words(a.watch));
  set.path("calibration.gains", a.gains);
  set.flag("image.remove_autos", !a.imaging.autocorrelations);
  set.integer("image.n_pixels", a.n_pixels > 0 ? a.n_pixels : kSkyPixels);
  set.text("image.output", a.output);
  set.text("image.picture", a.png);
  set.flag("image.fits", false);  // only what is named is written
  set.flag("image.latest", false);
  const std::string name = !a.output.empty() ? a.output
                           : !a.png.empty()  ? a.png
                                             : a.sky.light_curves;
  const std::filesystem::path first(name.empty() ? "sky" : name);
  set.text("output.directory", first.parent_path().empty() ? "." : first.parent_path().string());
  set.text("output.name", first.stem().string());
  set.add(a.recording.overrides);
  auto config = pipeline::parse_observation("schema = 1\n", "command line", set.list());
  const auto& image = config.image;
  if (!image.light_curves.empty() && image.watch.empty() && !(image.trigger_sigma > 0)) {
    throw ConfigError(
        "--light-curves holds watched sources and events: give --watch \"Cyg A,sun\" or --trigger "
        "SIGMA too");
  }
  return config;
}

int report_images(const Context& context, const pipeline::RunSummary& summary) {
  if (!context.json) return report_summary(context, summary, false);
  // The one thing most scripts ask for stands where it always stood.
  auto json = nlohmann::ordered_json::parse(pipeline::to_json(summary));
  if (json.contains("image")) {
    json["implementation"] = json["image"]["implementation"];
    json["path"] = json["image"]["path"];
    json["n_pixels"] = json["image"]["n_pixels"];
    if (json["image"].contains("peak")) json["peak"] = json["image"]["peak"];
  }
  fmt::print("{}\n", json.dump());
  return summary.errors.empty() ? 0 : static_cast<int>(ExitCode::io);
}

int run_voltages(const Context& context, const ImageArguments& a) {
  const auto config = sky_config(a);
  pipeline::RunOptions options;
  options.command_line = context.command_line();
  options.stop = &signal_count();
  ProgressPrinter progress(context);
  options.on_progress = [&](const pipeline::Progress& p) { progress.show(p); };
  const auto summary = pipeline::image_file(config, options);
  progress.finish();
  return report_images(context, summary);
}

VisibilityFile read_input(const ImageArguments& a) {
  const auto& v = a.visibilities;
  if (!v.imaginary.empty() && !a.gains.empty() && v.conjugate == "auto") {
    throw ConfigError(
        "--gains are divided out of V_ab = <v_a conj(v_b)>, after the conjugation of a covariance "
        "pair: say which way round it is, --conjugate no or yes");
  }
  VisibilityFile file = read_visibilities(a.recording.files[0], v);
  if (const auto before = gains_applied(file.observation); !before.empty() && !a.gains.empty())
    throw ConfigError(a.recording.files[0] + ": the table of gains " + before +
                      " was divided out of it before; leave --gains out, or image the file that it "
                      "was made of");
  if (const auto single = pipeline::single_polarization(file.observation);
      v.imaginary.empty() && !single.empty() && single != "I")
    Log::get().line(LogLevel::info, "note",
                    fmt::format("note: {}: it holds {} alone: the image is of {}, not of Stokes I",
                                a.recording.files[0], single, single));
  if (!a.phase_center.empty()) {
    const auto& dump = file.dumps[file.dumps.size() / 2];
    pipeline::rephase(file.observation, file.dumps,
                      named_direction(a.phase_center, file.observation.array, dump.centroid_tai_ns,
                                      "--phase-center", file.observation.earth_orientation),
                      a.phase_center);
  }
  return file;
}

/// Options of the sample imager, checked.
void set_sample_options(ImageArguments& a) {
  a.imaging.n_pixels = a.n_pixels > 0 ? a.n_pixels : kSamplePixels;
  a.imaging.implementation = a.sky.implementation;
  if (is_given(a, "--path")) a.imaging.path = *image::sample_path_named(a.sky.path);
  if (!a.scale.empty())
    a.imaging.width = pixel_scale_rad(a.scale) * static_cast<double>(a.imaging.n_pixels);
  a.imaging.weighting = *image::weighting_named(a.weight);
  a.imaging.want_psf = !a.psf.empty();
}

std::string stokes_name(int code) { return code == -5 ? "XX" : code == -6 ? "YY" : "Stokes I"; }

/// Dirty image about the phase centre of the dumps, all of them in one picture.
int run_samples(const Context& context, ImageArguments a, const VisibilityFile& file) {
  set_sample_options(a);
  // Uncalibrated receivers differ in gain by factors: equal weights are then the better picture.
  a.imaging.equalize_inputs =
      a.sky.equalize == "yes" || (a.sky.equalize == "auto" && file.observation.flux_unit != "Jy");
  Queue queue = Queue::cpu();  // this imager has CPU implementations only
  pipeline::ImagingResult result;
  {
    TaskProgress progress(
        context, fmt::format("image of {} x {} pixels", a.imaging.n_pixels, a.imaging.n_pixels));
    a.imaging.go_on = [&](double done) { return progress.go_on(done); };
    result = pipeline::make_image(queue, file.observation, file.dumps, a.imaging);
  }
  const image::Config geometry{a.imaging.n_pixels, a.imaging.width};
  const std::vector<double> pixels(result.image.pixels.begin(), result.image.pixels.end());
  const auto peak = image::peak_of(geometry, pixels);
  const auto [l, m] = peak.direction;
  const SkyPosition place = place_of(result.image, file.observation, l, m);
  std::vector<std::string> warnings;
  if (auto low = pipeline::low_phase_center(file.observation, file.dumps); !low.empty())
    warnings.push_back(std::move(low));
  if (a.sky.equalize == "yes" && !result.equalized)
    warnings.emplace_back("--equalize yes has no effect: the data hold no autocorrelations");
  warnings.insert(warnings.end(), result.warnings.begin(), result.warnings.end());
  std::vector<std::string> products;
  if (!a.output.empty()) {
    write_fits_image(a.output, result.image, file.observation, a.recording.keys.output.overwrite);
    products.push_back(a.output);
  }
  if (result.psf) {
    write_fits_image(a.psf, *result.psf, file.observation, a.recording.keys.output.overwrite);
    products.push_back(a.psf);
  }
  if (!a.png.empty()) {
    write_sky_picture(a.png, result.image, file.observation, {}, a.recording.keys.output.overwrite);
    products.push_back(a.png);
  }
  nlohmann::ordered_json json{{"products", products},
                              {"path", image::name(result.path)},
                              {"implementation", result.implementation},
                              {"n_samples", result.n_samples},
                              {"n_pixels", a.imaging.n_pixels},
                              {"stokes", stokes_name(result.image.stokes.front())},
                              {"equalized_inputs", result.equalized},
                              {"peak",
                               {{"l", l},
                                {"m", m},
                                {"value", peak.value},
                                {"sigma", peak.sigmas},
                                {"ra_deg", place.direction.ra_rad / kDegree_rad},
                                {"dec_deg", place.direction.dec_rad / kDegree_rad},
                                {"azimuth_deg", place.azimuth_rad / kDegree_rad},
                                {"elevation_deg", place.elevation_rad / kDegree_rad}}},
                              {"assumptions", assumptions(file)},
                              {"warnings", warnings}};
  const auto& beam = result.image.beam;
  if (beam) {
    json["beam"] = {{"major_deg", beam->major_rad / kDegree_rad},
                    {"minor_deg", beam->minor_rad / kDegree_rad},
                    {"position_angle_deg", beam->angle_rad / kDegree_rad}};
  }
  if (context.json) {
    fmt::print("{}\n", json.dump());
    return 0;
  }
  fmt::print("{} visibilities, {} weights -> {} x {} pixels of {}, {}, by {}\n", result.n_samples,
             a.weight, a.imaging.n_pixels, a.imaging.n_pixels,
             stokes_name(result.image.stokes.front()), image::name(result.path),
             result.implementation);
  fmt::print("brightest point {:.1f} sigma at l = {:.4f}, m = {:.4f} ({})\n", peak.sigmas, l, m,
             place_text(place));
  if (beam) {
    fmt::print("beam {:.4g} x {:.4g} deg, position angle {:.1f} deg\n",
               beam->major_rad / kDegree_rad, beam->minor_rad / kDegree_rad,
               beam->angle_rad / kDegree_rad);
  }
  for (const auto& line : assumptions(file)) fmt::print("{}\n", line);
  for (const auto& w : warnings) fmt::print("warning: {}\n", w);
  for (const auto& p : products) fmt::print("  {}\n", p);
  return 0;
}

/// All-sky images of visibilities, one of every dump.
int run_dumps(const Context& context, const ImageArguments& a, const VisibilityFile& file) {
  const auto config = sky_config(a);
  pipeline::RunSummary summary;
  {
    TaskProgress progress(context, fmt::format("images of {} integrations", file.dumps.size()));
    summary = pipeline::image_visibilities(config, file.observation, file.dumps,
                                           [&](double done) { return progress.go_on(done); });
  }
  if (auto low = pipeline::low_phase_center(file.observation, file.dumps); !low.empty())
    summary.warnings.push_back(std::move(low));
  for (const auto& line : assumptions(file)) {
    if (context.json) {
      summary.warnings.push_back(line);
    } else {
      fmt::print("{}\n", line);
    }
  }
  return report_images(context, summary);
}

/// Options of the other imager have no effect: said at once, not found out from the result.
void reject(const ImageArguments& a, const std::vector<std::string>& options,
            const std::string& why) {
  reject_options(a.given, options, why);
}

const std::vector<std::string> kSampleOptions{"--width",  "--scale",  "--channel-average",
                                              "--taper",  "--psf",    "--accuracy",
                                              "--weight", "--robust", "--stokes"};
const std::vector<std::string> kAllSkyOptions{
    "--cadence",   "--channels-per-bin", "--cell",         "--support", "--products", "--watch",
    "--apertures", "--trigger",          "--light-curves", "--frames",  "--movie",    "--gains"};

void check_options(const ImageArguments& a) {
  if (is_visibilities(a) && a.recording.files.size() > 1)
    throw ConfigError(a.recording.files[1] +
                      ": visibilities are imaged one file at a time; several files are recordings "
                      "of voltages");
  const bool pair = !a.visibilities.imaginary.empty();
  if (!pair) reject(a, pair_options(), "is of a covariance pair (--imag FILE)");
  if (pair) reject(a, {"--column"}, "is of a Measurement Set");
  if (!is_visibilities(a)) {
    const std::string why = "is of visibilities; this is a recording of voltages";
    reject(a, {"--conjugate", "--dead", "--phase-center", "--column"}, why);
  } else {
    reject(a, option_names(pipeline::kRecordingOptions, {"source", "channelize"}),
           "is of voltages; visibilities say it themselves");
    if (!pair)
      reject(a, option_names(pipeline::kPlaceOptions, {"telescope"}),
             "has no effect: visibility files say where their array is");
  }
  if (!is_visibilities(a)) {
    reject(a, kSampleOptions,
           "is of pictures of visibilities; images of voltages take --pixels, --cell, "
           "--channels-per-bin and --products");
  } else if (is_sample_image(a)) {
    reject(a, kAllSkyOptions,
           "is of the all-sky imager; visibilities go through it with --path auto, vis-grid or "
           "vis-dft");
    reject(a, {"--set"},
           "has no effect on a picture about the phase center; its options are --pixels, --width, "
           "--scale, --taper, --weight, --robust, --accuracy, --psf and --channel-average");
    if (is_given(a, "--scale")) reject(a, {"--width"}, "and --scale say the same; give one");
    if (a.weight != "briggs") reject(a, {"--robust"}, "is of --weight briggs");
  } else {
    reject(a, {"--phase-center"},
           "is of a picture about the phase center: all-sky images are about the zenith; leave "
           "--path out");
    reject(a, kSampleOptions,
           "is of a picture about the phase center; leave --path out for that, or give "
           "--pixels, --cell, --channels-per-bin and --products");
  }
}

int run(const Context& context, const ImageArguments& a) {
  const auto& s = a.sky;
  if (a.output.empty() && a.png.empty() && a.psf.empty() && s.light_curves.empty() &&
      s.frames.empty() && s.movie.empty()) {
    throw ConfigError(
        "nothing to write: give -o FILE.fits, --png FILE.png, --psf FILE.fits, --light-curves "
        "FILE.sqlite, --frames DIRECTORY or --movie FILE.mp4");
  }
  require_picture(a.png, "--png");
  SkyMovie::require_name(s.movie, "--movie");
  check_options(a);
  if (!is_visibilities(a)) return run_voltages(context, a);
  const bool one_picture = is_sample_image(a);
  if (one_picture) {
    require_ending(a.output, "-o", {".fits", ".fit", ".fts"});
    require_ending(a.psf, "--psf", {".fits", ".fit", ".fts"});
    require_all_creatable({a.output, a.png, a.psf}, a.recording.keys.output.overwrite);
    const double n_pixels = static_cast<double>(a.n_pixels > 0 ? a.n_pixels : kSamplePixels);
    for (const auto& name : {a.output, a.psf}) {
      const auto folder = std::filesystem::path(name).parent_path().string();
      if (!name.empty())
        require_room(folder.empty() ? "." : folder, 4 * n_pixels * n_pixels, "the pixels");
    }
  } else {
    pipeline::require_sky_outputs(sky_config(a));
  }
  const VisibilityFile file = read_input(a);
  return one_picture ? run_samples(context, a, file) : run_dumps(context, a, file);
}

}  // namespace

void add_image(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand("image", "all-sky images from voltages or visibilities");
  auto a = std::make_shared<ImageArguments>();
  sub->add_option(
         "file", a->recording.files,
         "recording(s) of voltages (with --station or --layout), visibilities: .ms, .uvfits, "
         ".uvh5, a description of station matrices (.toml), or the real part of a covariance FITS "
         "pair")
      ->required();
  sub->add_option("-o,--output", a->output, "FITS image");
  sub->add_option("--png", a->png, "picture (.png, .pdf, .svg)");
  sub->add_option("--pixels", a->n_pixels,
                  "pixels on a side; default 128 for voltages, 256 for visibilities");
  sub->add_flag("--autos", a->imaging.autocorrelations, "include auto-correlations");
  sub->add_option("--watch", a->watch, "light curves of \"Cyg A,sun,RA/DEC\" (degrees)");
  sub->add_option("--gains", a->gains, "CSV of gains to divide out: input,amplitude,phase_deg");
  KeyOptions options(*sub, "image", KeyOptions::Checks::none);  // parse_observation() does
  pipeline::fields(options, a->sky);
  auto* path = sub->get_option("--path");
  path->description(path->get_description() +
                    "; visibilities: without it one picture about their phase center, by direct, "
                    "gridded (w left out) or w-stacked, what is predicted to be the fastest unless "
                    "named; auto, vis-grid or vis-dft: all-sky images of every integration");
  sub->get_option("--equalize")->check(CLI::IsMember({"auto", "yes", "no"}));
  add_recording_options(*sub, a->recording);
  add_visibility_options(*sub, a->visibilities);
  sub->add_option("--phase-center", a->phase_center,
                  "center of a picture of visibilities: zenith, sun or RA_DEG,DEC_DEG; default: "
                  "that of the data");
  sub->add_option("--width", a->imaging.width,
                  "direction cosines across; 2 = horizon to horizon (picture of visibilities)")
      ->capture_default_str();
  sub->add_option("--scale", a->scale,
                  "size of a pixel instead of --width: 20asec, 3amin, 0.05deg (picture of "
                  "visibilities)");
  sub->add_option("--psf", a->psf,
                  "FITS image of the dirty beam, peak 1 (picture of visibilities)");
  sub->add_option(
         "--accuracy", a->imaging.max_error,
         "largest error of gridding, as a share of the mean of |V|: 1e-12 to 0.01 (picture "
         "of visibilities)")
      ->capture_default_str();
  sub->add_option("--weight", a->weight, "natural, uniform or briggs (picture of visibilities)")
      ->check(CLI::IsMember({"natural", "uniform", "briggs"}))
      ->capture_default_str();
  sub->add_option("--robust", a->imaging.robust, "of --weight briggs: -2 uniform, 2 natural")
      ->check(number_in(-5, 5));
  sub->add_option("--channel-average", a->imaging.channel_average,
                  "channels averaged before imaging (picture of visibilities)")
      ->capture_default_str();
  sub->add_option(
      "--taper", a->imaging.taper_fwhm,
      "uv taper to a beam this wide (FWHM, direction cosines; picture of visibilities)");
  sub->add_option("--stokes", a->imaging.stokes, "I, XX or YY (picture of visibilities)")
      ->capture_default_str();
  add_common(*sub, context);
  sub->callback([&context, sub, a] {
    for (const auto* option : sub->get_options()) {
      if (option->count() > 0) a->given.push_back(option->get_name());
    }
    context.action = [&context, a] { return run(context, *a); };
  });
}

}  // namespace ryle::app
