// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/image/image_setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/image/dirty_beam.hpp"
#include "ryle/io/image/aperture_file.hpp"
#include "ryle/pipeline/image/image_calibration.hpp"
#include "ryle/pipeline/visibility/setup.hpp"

namespace ryle::pipeline {
namespace {

constexpr double kDefaultImage_s = 1;

image::Products products_named(const std::string& name) {
  if (name == "linear") return image::Products::linear;
  return name == "intensity" ? image::Products::intensity : image::Products::stokes;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double sample_power(const ConstBlockView& blocks, std::int64_t channel, std::int64_t spectrum,
                    std::int64_t input) {
  return std::norm(get_sample(blocks, channel, spectrum, input));
}

/// The apertures of a file, [antenna * n_pols + pol].
std::vector<image::Aperture> antenna_apertures(const std::string& path, std::int64_t n_antennas,
                                               std::int64_t n_pols) {
  const ApertureFile file = read_aperture_file(path);
  const std::int64_t count = file.n_apertures;
  const bool each = count == n_antennas * n_pols;
  if (!each && count != n_antennas && count != n_pols && count != 1) {
    throw ConfigError(fmt::format(
        "image.apertures = \"{}\" holds {} apertures: 1, {} (polarizations), {} (antennas) or {} "
        "(both) would fit",
        path, count, n_pols, n_antennas, n_antennas * n_pols));
  }
  const std::int64_t size = file.n * file.n;
  std::vector<image::Aperture> apertures;
  for (std::int64_t k = 0; k < n_antennas * n_pols; ++k) {
    const std::int64_t which = each                  ? k
                               : count == n_antennas ? k / n_pols
                               : count == n_pols     ? k % n_pols
                                                     : 0;
    const auto first = file.values.begin() + which * size;
    apertures.push_back({file.step_m, file.n, {first, first + size}});
  }
  return apertures;
}

std::string reasons(const image::Plan& plan) {
  std::string text;
  for (const auto& p : plan.paths)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", image::name(p.path),
                        p.why_not.empty() ? "possible" : p.why_not);
  return text;
}

}  // namespace

Cadence make_cadence(double cadence_s, double spectra_per_s, std::int64_t n_spectra) {
  double length_s = cadence_s;
  if (cadence_s <= 0) {
    length_s = n_spectra > 0 ? static_cast<double>(n_spectra) / spectra_per_s : kDefaultImage_s;
  }
  Cadence cadence;
  cadence.images_per_stack =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(length_s / kLongestImage_s)));
  const double spectra = length_s * spectra_per_s / static_cast<double>(cadence.images_per_stack);
  // Everything there is must not lose its last spectrum to rounding.
  cadence.spectra_per_image = std::max<std::int64_t>(
      1, cadence_s <= 0 ? static_cast<std::int64_t>(std::ceil(spectra - 1e-9))
                        : std::llround(spectra));
  return cadence;
}

void add_levels(InputLevels& levels, const ConstBlockView& blocks, std::int64_t n_spectra,
                const std::uint64_t* valid, std::int64_t valid_words,
                std::int64_t valid_channel_stride_words, std::int64_t max_spectra,
                std::int64_t max_channels) {
  const auto n_inputs = static_cast<std::size_t>(blocks.n_inputs);
  levels.sum.resize(n_inputs);
  levels.n.resize(n_inputs);
  const std::int64_t step = std::max<std::int64_t>(1, blocks.n_channels / max_channels);
  const std::int64_t n = std::min(n_spectra, max_spectra);
  for (std::int64_t c = 0; c < blocks.n_channels; c += step) {
    const std::uint64_t* rows = valid == nullptr ? nullptr : valid + c * valid_channel_stride_words;
    for (std::size_t p = 0; p < n_inputs; ++p) {
      const auto input = static_cast<std::int64_t>(p);
      for (std::int64_t t = 0; t < n; ++t) {
        if (rows != nullptr && !test_bit(rows + input * valid_words, t)) continue;
        levels.sum[p] += sample_power(blocks, c, t, input);
        levels.n[p] += 1;
      }
    }
  }
}

DeadInputs find_dead(const ArrayLayout& array, const InputLevels& levels, const ImageConfig& config,
                     std::span<const std::uint8_t> before) {
  DeadInputs dead;
  const auto n = static_cast<std::size_t>(array.n_inputs());
  dead.flags.assign(n, 0);
  std::vector<double> powers;
  for (std::size_t p = 0; p < n; ++p) {
    if (array.inputs[p].bad) {
      dead.flags[p] = 1;
      ++dead.n_bad;
    } else if (levels.n[p] > 0 && levels.sum[p] > 0) {
      powers.push_back(levels.power(p));
    }
  }
  if (dead.n_bad == array.n_inputs()) {
    throw FormatError("nothing to image: the layout or station file calls every input bad");
  }
  const double middle = powers.empty() ? 0 : median(std::move(powers));
  std::int64_t used = 0;
  for (std::size_t p = 0; p < n; ++p) {
    if (dead.flags[p] != 0) continue;
    bool off = false;
    if (levels.n[p] == 0) {
      off = !before.empty() && before[p] != 0;
    } else {
      const double power = levels.power(p);
      off = power <= 0 || power < config.dead_below * middle || power > config.dead_above * middle;
    }
    dead.flags[p] = off ? 1 : 0;
    dead.n_dead += off ? 1 : 0;
    used += off ? 0 : 1;
  }
  if (used == 0) {
    throw FormatError(fmt::format(
        "nothing to image: all {} inputs are dead ({} by the layout or station file, {} without "
        "power in the first spectra); are these the right data?",
        n, dead.n_bad, dead.n_dead));
  }
  return dead;
}

bool equalizes(const ObservationConfig& config) {
  if (config.image.equalize != "auto") return config.image.equalize == "yes";
  return config.calibration.gains.empty() && config.calibration.jy_per_count2 <= 0;
}

std::vector<cf32> imager_gains(const ObservationConfig& config, const ArrayLayout& array,
                               const FrequencyAxis& frequency, const InputLevels& levels,
                               std::span<const std::uint8_t> dead, double jy_per_count2) {
  const std::int64_t n = array.n_inputs();
  const auto table = calibration_gains(config, n, 1);
  const bool equalize =
      equalizes(config) && !(config.image.equalize == "auto" && jy_per_count2 > 0);
  const double scale = jy_per_count2 > 0 ? std::sqrt(jy_per_count2) : 1;
  std::vector<cf32> gains(n * frequency.n_channels);
  for (std::int64_t p = 0; p < n; ++p) {
    const auto i = static_cast<std::size_t>(p);
    if (dead[i] != 0) continue;
    cf64 factor = scale;
    if (!table.empty()) factor *= cf64(table[i]);
    if (equalize) {
      // After the gains: the table may hold amplitudes that the power already shows.
      const double power = levels.power(i) * std::norm(factor);
      factor = power > 0 ? factor / std::sqrt(power) : 0;
    }
    for (std::int64_t c = 0; c < frequency.n_channels; ++c) {
      const double nu = frequency.center_hz(c);
      const double turns = nu * cable_delay_s(array.inputs[i], nu);
      const double angle_rad = 2 * kPi * (turns - std::floor(turns));
      gains[c * n + p] = cf32(factor * std::polar(1.0, angle_rad));
    }
  }
  return gains;
}

image::AllSkyConfig make_sky_config(const ObservationConfig& config, const ArrayLayout& array,
                                    const FrequencyAxis& frequency, std::int64_t spectra_per_image,
                                    std::span<const std::uint8_t> dead) {
  const ImageConfig& c = config.image;
  image::AllSkyConfig sky;
  for (const auto& antenna : array.antennas) sky.antenna_enu_m.push_back(antenna.enu_m);
  for (std::size_t p = 0; p < array.inputs.size(); ++p) {
    const auto& input = array.inputs[p];
    const bool bad = dead.empty() ? input.bad : dead[p] != 0;
    sky.inputs.push_back({input.antenna, input.pol, bad});
  }
  sky.channels = frequency;
  sky.n_channels_per_bin = c.channels_per_bin > 0
                               ? std::min(c.channels_per_bin, frequency.n_channels)
                               : frequency.n_channels;
  sky.n_spectra_per_image = spectra_per_image;
  sky.n_pixels = c.n_pixels;
  sky.cell_wavelengths = c.cell_wavelengths;
  sky.function.support = c.support;
  sky.function.correlated = c.correlated_functions;
  if (!c.apertures.empty()) {
    sky.function.apertures = antenna_apertures(resolve_path(config, c.apertures),
                                               array.n_antennas(), image::n_pols(sky));
    sky.function.correlated = true;  // the only way visibilities can be gridded with them
  }
  sky.remove_autos = c.remove_autos;
  sky.products = products_named(c.products);
  sky.path = c.path == "auto" ? image::Path::automatic : image::path_named(c.path);
  sky.implementation = c.implementation;
  sky.max_relative_error = c.max_relative_error;
  sky.max_zenith_distance_rad = c.max_zenith_distance_deg * kDegree_rad;
  sky.min_coherence = c.min_coherence;
  sky.max_bytes = memory_limit_bytes(config);
  return sky;
}

math::ImageTriggerConfig trigger_config(const ObservationConfig& config,
                                        const image::AllSkyConfig& sky) {
  math::ImageTriggerConfig trigger;
  trigger.n_pixels = sky.n_pixels;
  trigger.n_bins = image::n_bins(sky);
  trigger.n_planes = image::n_planes(sky);
  trigger.cell_direction_cosine = 1 / (static_cast<double>(sky.n_pixels) * sky.cell_wavelengths);
  trigger.threshold = config.image.trigger_sigma;
  return trigger;
}

image::CostModel machine_cost_model(Queue& queue) {
  return image_cost_model(queue.back_end(), queue.n_workers());
}

std::int64_t images_in(std::int64_t n_spectra, std::int64_t spectra_per_image) {
  return n_spectra > 0 ? (n_spectra + spectra_per_image - 1) / spectra_per_image : 0;
}

SkyPlan choose_path(const ObservationConfig& config, const image::AllSkyConfig& sky, Queue& queue,
                    bool correlator_runs_anyway, std::int64_t n_images) {
  SkyPlan chosen;
  const image::CostModel model = machine_cost_model(queue);
  chosen.plan = image::plan(sky, model, correlator_runs_anyway, n_images);
  chosen.core_speed = model.measured_at;
  chosen.path = sky.path == image::Path::automatic ? chosen.plan.choice : sky.path;
  const image::PathPrediction* prediction = nullptr;
  for (const auto& p : chosen.plan.paths) {
    if (p.path == chosen.path) prediction = &p;
  }
  if (chosen.path == image::Path::automatic || prediction == nullptr) {
    throw UnsupportedError(
        "no path can make these images within image.max_relative_error, "
        "image.min_coherence and the memory: " +
        reasons(chosen.plan));
  }
  chosen.bytes = prediction->bytes;
  if (config.image.trigger_sigma > 0) {
    chosen.bytes += math::ImageTrigger::n_bytes(trigger_config(config, sky));
  }
  require_memory(config, chosen.bytes);
  if (!prediction->possible) {
    throw UnsupportedError(fmt::format("image.path = \"{}\": {}; the others: {}",
                                       image::name(chosen.path), prediction->why_not,
                                       reasons(chosen.plan)));
  }
  chosen.predicted_s = prediction->seconds;
  return chosen;
}

namespace {

// "" where it is not known.
std::string speed_text(const image::CoreSpeed& speed) {
  if (!(speed.ops > 0)) return "";
  std::string text =
      fmt::format("  times hold for cores at {:.0f} GFLOPS (fp32 multiply-adds)", 1e-9 * speed.ops);
  if (speed.bytes_per_s > 0)
    text += fmt::format(" that read {:.1f} GB/s", 1e-9 * speed.bytes_per_s);
  if (speed.product_ops > 0)
    text += fmt::format(", a small X-engine at {:.0f} GOPS", 1e-9 * speed.product_ops);
  return text + "\n";
}

}  // namespace

std::string plan_text(const SkyPlan& plan, double image_s) {
  std::string text = fmt::format("  {:<12} {:>12} {:>10} {:>10} {:>9} {:>9}\n", "path",
                                 "ms an image", "real time", "memory", "error", "heights");
  const image::PathPrediction* gridded = nullptr;
  for (const auto& p : plan.plan.paths) {
    const char mark = p.path == plan.path ? '*' : ' ';
    if (p.seconds > 0) {
      text +=
          fmt::format(" {}{:<12} {:>12.3f} {:>9.1f}x {:>6.0f} MiB {:>9.1e} {:>9.1e}", mark,
                      image::name(p.path), p.seconds * 1e3, image_s / p.seconds,
                      static_cast<double>(p.bytes) / (1 << 20), p.relative_error, p.height_error);
      if (p.height_phase_rad > 0) gridded = &p;
    } else {
      text += fmt::format(" {}{:<12} {:>12}", mark, image::name(p.path), "-");
    }
    text += p.why_not.empty() ? "\n" : "  no: " + p.why_not + "\n";
  }
  text += fmt::format("  * {}: {}\n  coherence of the array plane {:.4f}\n", image::name(plan.path),
                      plan.plan.reason, plan.plan.coherence);
  text += speed_text(plan.core_speed);
  if (gridded != nullptr) {
    text += fmt::format(
        "  heights off the plane turn phases by {:.2g} rad rms at the edge of the field: gridded "
        "images lose {:.2g} % of a source there and differ from the exact sum by {:.2g} of the "
        "noise\n",
        gridded->height_phase_rad, 100 * gridded->height_error,
        std::sqrt(2 * gridded->height_error));
  }
  return text;
}

std::string plan_json(const SkyPlan& plan, double image_s) {
  nlohmann::ordered_json paths = nlohmann::ordered_json::array();
  for (const auto& p : plan.plan.paths) {
    paths.push_back({{"path", image::name(p.path)},
                     {"possible", p.possible},
                     {"why_not", p.why_not},
                     {"predicted_s", p.seconds},
                     {"setup_s", p.setup_s},
                     {"real_time_factor", p.seconds > 0 ? image_s / p.seconds : 0},
                     {"bytes", p.bytes},
                     {"relative_error", p.relative_error},
                     {"height_phase_rad", p.height_phase_rad},
                     {"height_error", p.height_error}});
  }
  return nlohmann::ordered_json{{"choice", image::name(plan.path)},
                                {"reason", plan.plan.reason},
                                {"image_s", image_s},
                                {"coherence", plan.plan.coherence},
                                {"warning", plan.plan.warning},
                                {"core_gflops", 1e-9 * plan.core_speed.ops},
                                {"core_gbytes_per_s", 1e-9 * plan.core_speed.bytes_per_s},
                                {"core_x_engine_gops", 1e-9 * plan.core_speed.product_ops},
                                {"paths", paths}}
      .dump();
}

std::vector<int> stokes_codes(const image::AllSkyConfig& sky) {
  if (image::n_planes(sky) == 1) {
    if (image::n_pols(sky) == 2) return {1};
    return {sky.inputs.front().pol == 0 ? -5 : -6};
  }
  if (sky.products == image::Products::linear) return {-5, -6, kPlaneReXY, kPlaneImXY};
  return {1, 2, 3, 4};
}

std::optional<SynthesizedBeam> sky_beam(const image::AllSkyConfig& sky,
                                        std::span<const std::uint8_t> dead) {
  const auto beam = image::dirty_beam(sky, dead);
  if (!beam) return std::nullopt;
  return SynthesizedBeam{beam->major, beam->minor, beam->angle_rad};
}

FrequencyAxis bin_axis(const image::AllSkyConfig& sky) {
  const auto b = static_cast<double>(sky.n_channels_per_bin);
  const FrequencyAxis& f = sky.channels;
  return {f.first_center_hz + 0.5 * (b - 1) * f.channel_width_hz, b * f.channel_width_hz,
          image::n_bins(sky)};
}

}  // namespace ryle::pipeline
