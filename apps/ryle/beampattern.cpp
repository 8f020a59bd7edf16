// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/ryle/command.hpp"
#include "apps/ryle/report.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/engine/beamform/pattern.hpp"
#include "ryle/engine/beamform/weights.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/image/image_file.hpp"
#include "ryle/plot/picture.hpp"
#include "ryle/telescope/beams_file.hpp"

namespace ryle::app {
namespace {

using namespace beamform;

struct PatternArguments {
  std::string beams, beam, at_utc, grid = "beam", weights = "i8", element = "isotropic", pol = "X",
                                   element_pointing = "zenith";
  double frequency_mhz = 0, width_deg = 0, exponent = 1;
  std::vector<double> element_size_m;
  std::int64_t n_pixels = 256;
  std::vector<std::string> outputs;
  bool overwrite = false;
};

/// One beam of one pol, ready to be looked at.
struct Simulation {
  ArrayLayout array;  ///< inputs of the pol only
  EarthOrientation earth_orientation;
  BeamPointing beam;
  Vector3 direction{};
  std::int64_t tai_ns = 0;
  double frequency_hz = 0;
  std::vector<cf32> ideal, used;
  std::int64_t n_antennas = 0;
  TangentFrame frame;
  double half_width = 0;
  PatternGrid grid;
  LobeShape shape;
};

WeightConfig weight_config(const BeamsFile& file, std::int64_t n, double frequency_hz) {
  WeightConfig c;
  c.n_antennas = n;
  c.channels = {frequency_hz, 0, 1};
  c.gain_mode = gain_mode(file.gain_mode);
  c.normalization = normalization(file.normalization);
  return c;
}

std::size_t index_of(const BeamsFile& file, const std::string& name) {
  if (name.empty()) return 0;
  std::string known;
  for (std::size_t k = 0; k < file.beams.size(); ++k) {
    if (file.beams[k].name == name) return k;
    if (k < 20) known += (k > 0 ? ", " : "") + file.beams[k].name;
  }
  throw ConfigError("--beam " + name + ": no such beam; the file has " + known);
}

void make_weights(const BeamsFile& file, std::size_t index, int pol, Simulation& s) {
  s.array = file.array;
  s.earth_orientation = file.earth_orientation;
  s.array.inputs.clear();
  std::vector<double> mask;
  std::vector<cf32> gains;
  const auto& subarray = file.subarrays[file.subarray_of_beam[index]];
  for (std::size_t i = 0; i < file.array.inputs.size(); ++i) {
    const ArrayInput& input = file.array.inputs[i];
    if (input.pol != pol) continue;
    s.array.inputs.push_back(input);
    mask.push_back(input.bad ? 0 : subarray[input.antenna]);
    gains.emplace_back(file.gains.empty() ? cf64(1) : file.gains[i]);
  }
  const auto n = s.array.n_inputs();
  if (n == 0) throw ConfigError("the layout has no input of that polarization");
  const WeightMaker maker(weight_config(file, n, s.frequency_hz), {gains.data(), {n, 1}}, {mask});
  s.ideal.resize(n);
  maker.make(steer(s.array, {{s.direction}}, s.frequency_hz), 0, {}, {s.ideal.data(), {1, 1, n}});
  for (const cf32& w : s.ideal) s.n_antennas += w != cf32(0);
}

// "zenith", "beam", "AZ,EL" in degrees.
Vector3 element_axis(const std::string& text, const Vector3& beam) {
  if (text == "zenith") return {0, 0, 1};
  if (text == "beam") return beam;
  double azimuth_deg = 0;
  double elevation_deg = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%lf,%lf%c", &azimuth_deg, &elevation_deg, &rest) != 2 ||
      !(std::abs(azimuth_deg) <= 360) || !(elevation_deg > 0 && elevation_deg <= 90)) {
    throw ConfigError(
        "--element-pointing " + text +
        ": must be zenith, beam or AZIMUTH,ELEVATION in degrees above the horizon, such "
        "as 180,44.5");
  }
  const double azimuth_rad = azimuth_deg * kDegree_rad;
  const double elevation_rad = elevation_deg * kDegree_rad;
  return {std::cos(elevation_rad) * std::sin(azimuth_rad),
          std::cos(elevation_rad) * std::cos(azimuth_rad), std::sin(elevation_rad)};
}

Element element_of(const PatternArguments& a, const Vector3& beam) {
  Element e;
  e.exponent = a.exponent;
  if (a.element == "cosine") e.pattern = ElementPattern::cosine;
  if (a.element == "aperture") {
    if (a.element_size_m.size() != 2)
      throw ConfigError("--element aperture needs --element-size-m EAST NORTH");
    e.pattern = ElementPattern::aperture;
    e.width_x_m = a.element_size_m[0];
    e.width_y_m = a.element_size_m[1];
  }
  if (a.element == "isotropic" && a.element_pointing != "zenith") {
    throw ConfigError(
        "--element-pointing has no effect on isotropic elements: give --element cosine "
        "or aperture too");
  }
  return pointed(e, element_axis(a.element_pointing, beam));
}

Simulation simulate(const PatternArguments& a) {
  const BeamsFile file = load_beams(a.beams);
  const std::size_t index = index_of(file, a.beam);
  Simulation s;
  BeamSky sky(file.array, file.beams, file.earth_orientation);
  s.beam = sky.beams()[index];
  const bool still = s.beam.frame == BeamFrame::hadec || s.beam.frame == BeamFrame::azel ||
                     s.beam.freeze_at_tai_ns.has_value();
  if (!a.at_utc.empty()) {
    s.tai_ns = tai_ns_from_utc_iso(a.at_utc);
  } else if (!still) {
    throw ConfigError("beam \"" + s.beam.name + "\" follows the sky: --at UTC is needed");
  } else {
    s.tai_ns = s.beam.freeze_at_tai_ns.value_or(tai_ns_from_utc_iso("2000-01-01T12:00:00"));
  }
  const BeamSky one(file.array, {s.beam}, file.earth_orientation);
  s.direction = one.directions_enu(s.tai_ns)[0];
  if (!(s.direction[2] > 0))
    throw ConfigError("beam \"" + s.beam.name + "\" is below the horizon at " + utc_iso(s.tai_ns) +
                      " UTC");
  s.frequency_hz = a.frequency_mhz > 0
                       ? a.frequency_mhz * 1e6
                       : file.first_center_hz +
                             0.5 * static_cast<double>(file.n_channels - 1) * file.channel_step_hz;
  make_weights(file, index, a.pol == "X" ? 0 : 1, s);
  s.used = a.weights == "i8" ? quantized_weights(s.ideal) : s.ideal;
  std::vector<std::int64_t> inputs(s.array.inputs.size());
  for (std::size_t k = 0; k < inputs.size(); ++k) inputs[k] = static_cast<std::int64_t>(k);
  const BeamPattern pattern(s.array, inputs, s.used, s.frequency_hz, element_of(a, s.direction));
  const TangentFrame at_beam = tangent_frame(s.direction, file.array.latitude_rad);
  const bool all_sky = a.grid == "sky";
  s.frame = all_sky ? tangent_frame({0, 0, 1}, file.array.latitude_rad) : at_beam;
  s.half_width = all_sky ? 1.0 : std::sin(0.5 * a.width_deg * kDegree_rad);
  s.grid = pattern_grid(pattern, s.frame, a.n_pixels, s.half_width);
  // The lobe is measured on a grid about the beam, also when the picture is of the whole sky.
  const double reach = all_sky ? 0.5 : s.half_width;
  s.shape = lobe_shape(pattern, at_beam,
                       all_sky ? pattern_grid(pattern, at_beam, 256, reach) : s.grid, reach);
  return s;
}

/// In [0, 360), from north through east.
double azimuth_deg(const Vector3& enu) {
  return std::fmod(std::atan2(enu[0], enu[1]) / kDegree_rad + 360, 360);
}

std::string csv_of(const Simulation& s) {
  std::string csv = "l,m,azimuth_deg,elevation_deg,power\n";
  const std::int64_t n = s.grid.n_pixels;
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      const float power = s.grid.power[row * n + column];
      if (std::isnan(power)) continue;
      const double l = -static_cast<double>(column - n / 2) * s.grid.cell;
      const double m = static_cast<double>(row - n / 2) * s.grid.cell;
      const Vector3 enu = s.frame.at(l, m);
      csv += fmt::format("{:.8f},{:.8f},{:.6f},{:.6f},{:.8g}\n", l, m, azimuth_deg(enu),
                         std::asin(enu[2]) / kDegree_rad, power);
    }
  }
  return csv;
}

void draw_pattern(const std::string& path, const Simulation& s, bool overwrite) {
  Panel panel;
  panel.title = "Beam " + s.beam.name;
  panel.x_label = "l (direction cosine, east to the left)";
  panel.y_label = "m (direction cosine, north up)";
  panel.color_label = "relative power (dB)";
  panel.horizon_circle = s.half_width >= 1;
  panel.n_rows = panel.n_columns = s.grid.n_pixels;
  for (const float power : s.grid.power)
    panel.values.push_back(10 * std::log10(std::max(power, 1e-9f)) + 0 * power);  // keeps NaN
  panel.x_min = s.half_width;
  panel.x_max = -s.half_width;
  panel.y_min = -s.half_width;
  panel.y_max = s.half_width;
  panel.square = true;
  panel.first_row_at_top = false;
  panel.color_min = -40;
  panel.color_max = 0;
  write_picture(path, {panel},
                fmt::format("{:.3f} MHz  \u00b7  {} antennas  \u00b7  Ryle {}",
                            s.frequency_hz * 1e-6, s.n_antennas, version()),
                overwrite);
}

void write_fits(const std::string& path, const Simulation& s, const Context& context,
                bool overwrite) {
  SkyImage image;
  image.n_pixels = s.grid.n_pixels;
  image.pixels = s.grid.power;
  image.cell_direction_cosine = s.grid.cell;
  image.frequency = {s.frequency_hz, 1, 1};
  image.start_tai_ns = image.centroid_tai_ns = image.end_tai_ns = s.tai_ns;
  image.unit = "relative power";
  image.metadata.path = "beam pattern";
  image.center = direction_of_enu(s.array, s.frame.s, s.tai_ns, s.earth_orientation);
  const auto axes = uvw_axes(s.array, image.center, s.tai_ns, s.earth_orientation);
  const Vector3& y = s.frame.y;
  const auto along = [&](const Vector3& axis) {
    return axis[0] * y[0] + axis[1] * y[1] + axis[2] * y[2];
  };
  image.north_angle_rad = std::atan2(along(axes[0]), along(axes[1]));
  Observation observation;
  observation.array = s.array;
  observation.frequency = image.frequency;
  observation.phase_center = image.center;
  observation.earth_orientation = s.earth_orientation;
  observation.object = s.beam.name;
  observation.provenance.version = version();
  observation.provenance.command_line = context.command_line();
  write_fits_image(path, image, observation, overwrite);
}

void write_outputs(const PatternArguments& a, const Context& context, const Simulation& s) {
  for (const auto& path : a.outputs) {
    if (path.ends_with(".fits")) {
      write_fits(path, s, context, a.overwrite);
    } else if (path.ends_with(".csv")) {
      publish_bytes(path, csv_of(s), a.overwrite);
    } else {
      draw_pattern(path, s, a.overwrite);
    }
  }
}

int report(const Context& context, const PatternArguments& a, const Simulation& s) {
  const double elevation_deg = std::asin(s.direction[2]) / kDegree_rad;
  const double loss_db = weight_loss_db(s.used, s.ideal);
  const auto degrees = [](double angle_rad) { return angle_rad / kDegree_rad; };
  if (context.json) {
    const auto number = [](double x) {
      return std::isfinite(x) ? nlohmann::json(x) : nlohmann::json(nullptr);
    };
    fmt::print("{}\n",
               nlohmann::ordered_json{
                   {"beam", s.beam.name},
                   {"frequency_mhz", s.frequency_hz * 1e-6},
                   {"azimuth_deg", azimuth_deg(s.direction)},
                   {"elevation_deg", elevation_deg},
                   {"n_antennas", s.n_antennas},
                   {"weights", a.weights},
                   {"half_power_width_deg",
                    {number(degrees(s.shape.widest_rad)), number(degrees(s.shape.narrowest_rad))}},
                   {"position_angle_deg", degrees(s.shape.angle_of_widest_rad)},
                   {"peak_sidelobe_db", number(s.shape.sidelobe_db)},
                   {"loss_to_ideal_weights_db", loss_db},
                   {"outputs", a.outputs}}
                   .dump());
    return 0;
  }
  fmt::print("beam {}: azimuth {:.4f} deg, elevation {:.4f} deg, {:.4f} MHz, {} antennas\n",
             s.beam.name, azimuth_deg(s.direction), elevation_deg, s.frequency_hz * 1e-6,
             s.n_antennas);
  fmt::print("half-power widths {:.3f} x {:.3f} deg, the wider at position angle {:.1f} deg\n",
             degrees(s.shape.widest_rad), degrees(s.shape.narrowest_rad),
             degrees(s.shape.angle_of_widest_rad));
  fmt::print("highest sidelobe {:.2f} dB in the picture; {} weights lose {:.6f} dB\n",
             s.shape.sidelobe_db, a.weights, loss_db);
  for (const auto& path : a.outputs) fmt::print("wrote {}\n", path);
  return 0;
}

void check_outputs(const PatternArguments& a) {
  for (const auto& path : a.outputs) {
    const auto dot = path.rfind('.');
    const std::string end = dot == std::string::npos ? "" : path.substr(dot);
    if (end != ".fits" && end != ".png" && end != ".pdf" && end != ".svg" && end != ".csv")
      throw ConfigError("-o " + path + ": patterns are written as .fits, .png, .pdf, .svg or .csv");
  }
  require_all_creatable(a.outputs, a.overwrite);
}

}  // namespace

void add_beampattern(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand(
      "beampattern", "what a beam sees: its power pattern with the weights as they are used");
  auto a = std::make_shared<PatternArguments>();
  sub->add_option("beams", a->beams, "beams file (TOML)")->required();
  sub->add_option("--beam", a->beam, "name of the beam; the first of the file otherwise");
  sub->add_option("--at", a->at_utc, "UTC, for beams that follow the sky");
  sub->add_option("--freq-mhz", a->frequency_mhz, "frequency; the middle of the band otherwise")
      ->check(CLI::PositiveNumber);
  sub->add_option("--grid", a->grid, "beam: about the beam; sky: from horizon to horizon")
      ->check(CLI::IsMember({"beam", "sky"}))
      ->capture_default_str();
  a->width_deg = 10;
  sub->add_option("--width-deg", a->width_deg, "width of the picture about the beam")
      ->check(CLI::Range(1e-6, 179.0))
      ->capture_default_str();
  sub->add_option("--pixels", a->n_pixels, "even number of pixels along each side")
      ->check(CLI::Range(2, 8192))
      ->capture_default_str();
  sub->add_option("--weights", a->weights, "i8: 8-bit codes as the beamformer's default; f32")
      ->check(CLI::IsMember({"i8", "f32"}))
      ->capture_default_str();
  sub->add_option("--pol", a->pol, "polarization of the inputs")
      ->check(CLI::IsMember({"X", "Y"}))
      ->capture_default_str();
  sub->add_option("--element", a->element, "pattern of one element")
      ->check(CLI::IsMember({"isotropic", "cosine", "aperture"}))
      ->capture_default_str();
  sub->add_option(
         "--element-pointing", a->element_pointing,
         "where the elements point: zenith, beam (dishes that follow it) or AZ,EL in degrees")
      ->capture_default_str();
  sub->add_option("--element-exponent", a->exponent, "cosine: power cos(angle from the axis)^n")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  sub->add_option("--element-size-m", a->element_size_m,
                  "aperture: size east and north (level and upright when pointed)")
      ->expected(2)
      ->check(CLI::PositiveNumber);
  sub->add_option("-o,--output", a->outputs,
                  "NAME.fits, .csv or a picture: .png, .pdf, .svg (repeatable)");
  sub->add_flag("--overwrite", a->overwrite, "replace files that exist");
  add_common(*sub, context);
  sub->callback([&context, a] {
    context.action = [&context, a] {
      check_outputs(*a);
      const Simulation s = simulate(*a);
      write_outputs(*a, context, s);
      return report(context, *a, s);
    };
  });
}

}  // namespace ryle::app
