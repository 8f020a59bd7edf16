// SPDX-License-Identifier: BSD-3-Clause
// All-sky imager: one set of images from resident 4+4-bit voltages (E-field paths) or from the
// correlator's sums (visibility paths; the rows "correlate+..." hold the X-engine too).
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <string>
#include <tuple>
#include <vector>

#include "bench/bench.hpp"
#include "bench/image_case.hpp"
#include "ryle/core/random.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/image/geometry.hpp"
#include "ryle/pipeline/image/image_calibration.hpp"

namespace ryle::bench {
namespace {

using image::AllSkyConfig;
using image::Path;

/// Factor either way between predicted and best time.
constexpr double kPredictionWithin = 1.3;

struct ImageCase {
  std::int64_t n_antennas, n_channels, n_spectra;
  Path path;
  bool with_correlator = false;
  std::int64_t n_gulps = 1;  ///< of n_spectra, per set of images
};

std::vector<ImageCase> image_cases(bool quick) {
  if (quick) {
    return {{24, 2, 128, Path::efield},
            {24, 2, 128, Path::vis_grid},
            {24, 2, 128, Path::vis_dft},
            {24, 2, 128, Path::efield_dft},
            {24, 2, 128, Path::vis_grid, true}};
  }
  return {// LWA-SV: 40 ms of 16 channels
          {256, 16, 1000, Path::vis_grid},
          {256, 16, 1000, Path::vis_grid, true},
          {256, 16, 1000, Path::efield},
          {256, 2, 1000, Path::vis_dft},
          {256, 2, 192, Path::efield_dft},
          // LWA-NA class: 1 s of 312 channels
          {64, 312, 1000, Path::vis_grid},
          {64, 312, 1000, Path::vis_grid, true, 25},
          {64, 8, 1000, Path::efield},
          {64, 8, 1000, Path::vis_dft},
          {64, 2, 192, Path::efield_dft}};
}

// Directions within r < 0.6, where gridding is good to 1e-7 (image.md 2).
std::vector<std::int64_t> probes(const AllSkyConfig& config) {
  const double limit = 0.6 * static_cast<double>(config.n_pixels) * config.cell_wavelengths;
  std::vector<std::int64_t> pixels;
  for (std::uint64_t k = 0; pixels.size() < 12; ++k) {
    const double x = (2 * uniform(combine(91, k, 0)) - 1) * limit;
    const double y = (2 * uniform(combine(91, k, 1)) - 1) * limit;
    if (std::hypot(x, y) > limit) continue;
    pixels.push_back((std::llround(y) + config.n_pixels / 2) * config.n_pixels + std::llround(x) +
                     config.n_pixels / 2);
  }
  return pixels;
}

// I Q U V of the last channel at a pixel, autocorrelations removed: the equation in double.
std::array<double, 4> direct_sum(const AllSkyConfig& config, const image::FieldInput& input,
                                 std::int64_t pixel) {
  const auto plane = image::fit_plane(config);
  const auto s =
      image::direction_of_pixel(config, plane, static_cast<double>(pixel % config.n_pixels),
                                static_cast<double>(pixel / config.n_pixels));
  const std::int64_t channel = config.channels.n_channels - 1;
  const double waves_per_m = config.channels.center_hz(channel) / kSpeedOfLight_m_per_s;
  const auto n = static_cast<std::int64_t>(config.antenna_enu_m.size());
  std::vector<cf64> steer;
  for (const auto& [x, y, z] : config.antenna_enu_m) {
    const double turns = waves_per_m * (x * s[0] + y * s[1] + z * s[2]);
    steer.push_back(std::polar(1.0, -2 * kPi * (turns - std::round(turns))));
  }
  double xx = 0, yy = 0;
  cf64 xy = 0;
  for (std::int64_t t = 0; t < input.n_spectra; ++t) {
    cf64 bx = 0, by = 0;
    for (std::int64_t a = 0; a < n; ++a) {
      const cf64 x = get_sample(input.blocks, channel, t, 2 * a);
      const cf64 y = get_sample(input.blocks, channel, t, 2 * a + 1);
      bx += x * steer[a];
      by += y * steer[a];
      xx -= std::norm(x);
      yy -= std::norm(y);
      xy -= x * std::conj(y);
    }
    xx += std::norm(bx);
    yy += std::norm(by);
    xy += bx * std::conj(by);
  }
  const double w = static_cast<double>(input.n_spectra * n * (n - 1));
  return {(xx + yy) / 2 / w, (xx - yy) / 2 / w, xy.real() / w, xy.imag() / w};
}

// fp32 sums and gridding: 1e-6 of the peak; the margin is for the tail of twelve probes.
bool verify(Queue& queue, const AllSkyConfig& config, const ImageData& data) {
  image::Images images;
  if (image::takes_voltages(config.path)) {
    auto imager = image::make_field_imager(queue, config);
    imager->execute(queue, data.field(0));
    imager->finish(queue, images);
  } else {
    const auto sums = correlated(queue, config, data, 1);
    image::make_vis_imager(queue, config)->execute(queue, vis_input(sums), images);
  }
  const std::int64_t size = image::plane_size(config);
  const float* image = images.pixels.data() + (image::n_bins(config) - 1) * 4 * size;
  double peak = 0;
  for (std::int64_t p = 0; p < size; ++p) {
    if (!std::isnan(image[p])) peak = std::max(peak, std::abs(static_cast<double>(image[p])));
  }
  for (const std::int64_t pixel : probes(config)) {
    const auto expected = direct_sum(config, data.field(0), pixel);
    for (std::int64_t p = 0; p < 4; ++p) {
      const double got = static_cast<double>(image[p * size + pixel]);
      if (!(std::abs(got - expected[p]) < 5e-6 * peak)) return false;
    }
  }
  return true;
}

// Correlator and imager one after the other, as they share the cores.
TimedAtSpeed time_both(Queue& queue, CoreSpeedProbe& probe, const AllSkyConfig& config,
                       const ImageData& data, std::int64_t n_gulps, double seconds) {
  auto correlator = correlate::make_correlator(
      queue, {static_cast<std::int64_t>(config.inputs.size()), config.channels.n_channels,
              SampleFormat::ci4, config.n_spectra_per_image, "auto"});
  auto imager = image::make_vis_imager(queue, config);
  correlate::Sums sums;
  image::Images images;
  std::int64_t gulp = 0;
  const TimedPart one_gulp{[&] { correlator->execute(queue, data.correlator(++gulp)); }, true};
  std::vector<TimedPart> parts(n_gulps, one_gulp);
  parts.push_back({[&] {
    correlator->finish(queue, sums);
    imager->execute(queue, vis_input(sums), images);
  }});
  return time_at_speed(probe, seconds, parts);
}

double predicted_s(const AllSkyConfig& config, const image::CostModel& model,
                   bool with_correlator) {
  for (const auto& p : image::plan(config, model, !with_correlator).paths) {
    if (p.path == config.path) return p.seconds;
  }
  return 0;
}

// What the planner counts, at 8 per complex multiply-add.
double useful_operations(const AllSkyConfig& config, bool with_correlator) {
  image::CostModel model;
  model.correlate_output_bytes = 1e30;
  model.correlate_ops = model.efield_fft_ops = model.efield_grid_ops = model.vis_grid_ops =
      model.vis_dft_ops = model.efield_dft_ops = 1;
  return predicted_s(config, model, with_correlator);
}

double rounded(double x) { return std::round(100 * x) / 100; }

// The planner's word against the clock, at the speed that the cores had: prediction_ok. The same
// without regard to that speed is `raw`.
void compare(const Options& options, const AllSkyConfig& config, const image::CostModel& model,
             bool with_correlator, const TimedAtSpeed& timed, Result& result) {
  const auto add = [&](const char* name, double value) { result.sizes.emplace_back(name, value); };
  const double raw_s = predicted_s(config, model, with_correlator);
  const RunAtSpeed& run = timed.typical();
  const double scaled_s =
      predicted_s(config, image::at_core_speed(model, run.speed), with_correlator);
  const double ratio = scaled_s / run.seconds;
  const bool good = ratio > 1 / kPredictionWithin && ratio < kPredictionWithin;
  add("predicted_ms", rounded(1e3 * raw_s));
  add("raw_predicted_over_best", rounded(raw_s / result.min_s));
  add("scaled_predicted_ms", rounded(1e3 * scaled_s));
  add("measured_ms", rounded(1e3 * run.seconds));
  add("predicted_over_measured", rounded(ratio));
  add("prediction_ok", good ? 1 : 0);
  add("core_gflops", rounded(1e-9 * run.speed.ops));
  add("core_gbytes_per_s", rounded(1e-9 * run.speed.bytes_per_s));
  add("core_x_engine_gops", rounded(1e-9 * run.speed.product_ops));
  add("calibrated_core_gflops", rounded(1e-9 * model.measured_at.ops));
  add("calibrated_core_gbytes_per_s", rounded(1e-9 * model.measured_at.bytes_per_s));
  add("calibrated_core_x_engine_gops", rounded(1e-9 * model.measured_at.product_ops));
  add("core_share", rounded(run.core_share));
  add("runs", static_cast<double>(timed.kept.size()));
  add("runs_dropped", timed.n_dropped);
  if (!good && !options.quick) {
    char text[200];
    std::snprintf(text, sizeof text,
                  "warning: %s predicted %.3g ms at %.0f GFLOPS a core, took %.3g ms: run with "
                  "--calibrate",
                  result.implementation.c_str(), scaled_s * 1e3, run.speed.ops * 1e-9,
                  run.seconds * 1e3);
    options.notice(text);
  }
}

void roofline(const Options& options, Path path, Result& result) {
  const double ceiling = ceiling_fma_f32_ops();
  if (!(ceiling > 0)) return;
  // V_ab = conj(V_ba): 4 planes of half the pairs, where the planner counts 3 of all.
  const double executed = result.useful_ops * (path == Path::vis_dft ? 2.0 / 3 : 1.0);
  result.roofline_fraction = executed / result.min_s / (ceiling * options.n_workers);
  char text[64];
  std::snprintf(text, sizeof text, "fp32 FMA %d x 1 core %.1f GFLOPS", options.n_workers,
                ceiling * 1e-9);
  result.roofline = text;
}

// Repeated when no run of it counted; the last try says so.
TimedAtSpeed timed_case(Queue& queue, CoreSpeedProbe& probe, const Options& options,
                        const ImageCase& k, const AllSkyConfig& config, const ImageData& data) {
  TimedAtSpeed timed;
  int dropped = 0;
  for (int attempt = 0; attempt < 3 && timed.empty(); ++attempt) {
    timed = k.with_correlator
                ? time_both(queue, probe, config, data, k.n_gulps, options.seconds_per_case)
                : time_image(queue, probe, config, data, options.seconds_per_case);
    dropped += timed.n_dropped;
  }
  timed.n_dropped = dropped;
  return timed;
}

void measure(const Options& options, const ImageCase& k, const image::CostModel& model,
             Queue& queue, CoreSpeedProbe& probe, const Emit& emit) {
  AllSkyConfig config = scattered_array(k.n_antennas, k.n_channels, k.n_spectra, k.path);
  config.n_pixels = options.quick ? 64 : 128;
  config.implementation = options.implementation;
  const ImageData data(config, k.n_spectra, !options.quick);
  AllSkyConfig whole = config;
  whole.n_spectra_per_image = k.n_spectra * k.n_gulps;

  Result result;
  result.engine = "image";
  result.implementation =
      (k.with_correlator ? "correlate+" : "") + std::string(name(k.path)) + "/" +
      std::string(image::takes_voltages(k.path) ? make_field_imager(queue, config)->implementation()
                                                : make_vis_imager(queue, config)->implementation());
  result.device = device_description(options.n_workers);
  result.sizes = {{"n_antennas", static_cast<double>(k.n_antennas)},
                  {"n_channels", static_cast<double>(k.n_channels)},
                  {"n_spectra", static_cast<double>(k.n_spectra * k.n_gulps)},
                  {"n_pixels", static_cast<double>(config.n_pixels)},
                  {"support", static_cast<double>(config.function.support)}};
  result.verified = verify(queue, config, data);
  result.rate_unit = "x real time";
  if (!result.verified) return emit(result);
  const TimedAtSpeed timed = timed_case(queue, probe, options, k, config, data);
  if (timed.empty()) {
    options.notice("no row of " + result.implementation +
                   ": the speed of the cores moved by more than 10 % in every run");
    return;
  }
  result.median_s = timed.median_s();
  result.min_s = timed.min_s();
  compare(options, whole, model, k.with_correlator, timed, result);
  result.useful_ops = useful_operations(whole, k.with_correlator);
  const double image_s =
      static_cast<double>(k.n_spectra * k.n_gulps) / config.channels.channel_width_hz;
  result.rate = image_s / result.median_s;
  if (!k.with_correlator) roofline(options, k.path, result);
  emit(result);
}

}  // namespace

void bench_image(const Options& options, const Emit& emit) {
  Queue queue = Queue::cpu(options.n_workers);
  CoreSpeedProbe probe(queue);
  image::CostModel model = pipeline::image_cost_model(BackEnd::cpu, options.n_workers);
  if (options.calibrate) {
    model = calibrate_image(queue, probe, options.seconds_per_case);
    const std::string file =
        pipeline::image_calibration_file(pipeline::image_machine(BackEnd::cpu, options.n_workers));
    if (!file.empty()) pipeline::save_image_calibration(model, file);
    options.notice(pipeline::to_json(model));
    options.notice(file.empty() ? "not kept: neither XDG_CACHE_HOME nor HOME is set"
                                : "kept in " + file);
  }
  const bool stacked = options.path == image::name(image::SamplePath::w_stacked);
  if (stacked || options.path == "all") bench_sample_image(options, emit);
  if (stacked) return;
  for (const auto& k : image_cases(options.quick)) {
    if (options.path != "all" && image::path_named(options.path) != k.path) continue;
    measure(options, k, model, queue, probe, emit);
  }
}

}  // namespace ryle::bench
