// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/plot/sky_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"

namespace ryle::plot {
namespace {

double dot(const Vector3& a, const Vector3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/// xx, xy, yy of the antennas in use along the l and m axes, in wavelengths of the band's centre.
std::array<double, 3> position_covariance(const SkyImage& image, const Observation& observation) {
  const auto& array = observation.array;
  const auto axes = image_axes(image, observation);
  const double per_m = image.frequency.band_center_hz() / kSpeedOfLight_m_per_s;
  std::vector<bool> used(array.antennas.size(), array.inputs.empty());
  for (const auto& input : array.inputs) {
    if (!input.bad) used[input.antenna] = true;
  }
  double n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  for (std::size_t a = 0; a < used.size(); ++a) {
    if (!used[a]) continue;
    const Vector3& r = array.antennas[a].enu_m;
    const double u = per_m * dot(axes[0], r), v = per_m * dot(axes[1], r);
    n += 1;
    x += u;
    y += v;
    xx += u * u;
    xy += u * v;
    yy += v * v;
  }
  if (n < 3) return {0, 0, 0};
  x /= n;
  y /= n;
  return {xx / n - x * x, xy / n - x * y, yy / n - y * y};
}

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.4g} \u00b5s", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.4g} ms", seconds * 1e3);
  return fmt::format("{:.4g} s", seconds);
}

/// The plane a picture shows. @shape [y][x]
std::vector<float> plane_of(const SkyImage& image, const SkyPictureOptions& o) {
  const std::int64_t size = image.plane_size();
  const auto n_stokes = static_cast<std::int64_t>(image.stokes.size());
  if (image.n_pixels < 2 || !(image.cell_direction_cosine > 0) ||
      static_cast<std::int64_t>(image.pixels.size()) != n_stokes * image.n_channels * size) {
    throw ConfigError(fmt::format(
        "picture of the sky: {} values for {} x {} pixels of {}, {} channels, {} planes",
        image.pixels.size(), image.n_pixels, image.n_pixels, image.cell_direction_cosine,
        image.n_channels, n_stokes));
  }
  if (o.plane < 0 || o.plane >= n_stokes || o.channel < -1 || o.channel >= image.n_channels) {
    throw ConfigError(fmt::format(
        "picture of the sky: plane {} and channel {} of an image with {} planes and {} channels",
        o.plane, o.channel, n_stokes, image.n_channels));
  }
  const std::int64_t first = o.channel < 0 ? 0 : o.channel;
  const std::int64_t end = o.channel < 0 ? image.n_channels : o.channel + 1;
  std::vector<double> sum(size, 0.0);
  std::vector<int> count(size, 0);
  for (std::int64_t c = first; c < end; ++c) {
    const float* from = image.pixels.data() + (o.plane * image.n_channels + c) * size;
    for (std::size_t k = 0; k < sum.size(); ++k) {
      if (!std::isfinite(from[k])) continue;
      sum[k] += static_cast<double>(from[k]);
      ++count[k];
    }
  }
  std::vector<float> out(sum.size());
  for (std::size_t k = 0; k < sum.size(); ++k)
    out[k] = count[k] > 0 ? static_cast<float>(sum[k] / count[k]) : kNaN;
  return out;
}

bool is_signed(const SkyImage& image, const SkyPictureOptions& o) {
  const int code = image.stokes[o.plane];
  return code != 1 && code != -5 && code != -6;
}

ColorScale scale_of(const std::vector<float>& plane, bool signed_values,
                    const SkyPictureOptions& o) {
  std::vector<float> finite;
  for (const float v : plane) {
    if (std::isfinite(v)) finite.push_back(v);
  }
  ColorScale scale;
  if (o.color_max > o.color_min) {
    scale = {o.color_min, o.color_max, 1};
  } else if (!finite.empty()) {
    const auto at = [&](double fraction) {
      const auto k = static_cast<std::ptrdiff_t>(fraction * static_cast<double>(finite.size() - 1));
      std::nth_element(finite.begin(), finite.begin() + k, finite.end());
      return static_cast<double>(finite[k]);
    };
    scale = {at(0.005), at(1.0), 1};
    if (signed_values) {
      scale.high = std::max(std::abs(at(0.002)), std::abs(at(0.998)));
      scale.low = -scale.high;
    }
    if (!(scale.high > scale.low))
      scale.high = scale.low + (scale.low != 0 ? std::abs(scale.low) : 1);
    // A source that outshines everything would leave the rest black on a linear scale.
    if (!signed_values && scale.high - scale.low > 8 * (at(0.9) - scale.low)) scale.gamma = 0.5;
  }
  if (o.color_gamma > 0) scale.gamma = o.color_gamma;
  return scale;
}

ColorBar color_bar_of(const SkyImage& image, const SkyPictureOptions& options,
                      const std::vector<float>& plane, double unit_px) {
  const bool signed_values = is_signed(image, options);
  const ColorScale scale = scale_of(plane, signed_values, options);
  ColorBar bar;
  bar.map = signed_values ? ColorMap::polar : ColorMap::inferno;
  bar.low = scale.low;
  bar.high = scale.high;
  bar.gamma = scale.gamma;
  const double slack = 1e-6 * (scale.high - scale.low);
  for (const float v : plane) {
    if (!std::isfinite(v)) continue;
    bar.clipped_low = bar.clipped_low || static_cast<double>(v) < scale.low - slack;
    bar.clipped_high = bar.clipped_high || static_cast<double>(v) > scale.high + slack;
  }
  // Without a unit an image is in powers of one antenna: its inputs were equalized.
  bar.label = image.unit.empty() ? "intensity (power of one antenna = 1)"
                                 : "intensity (" + image.unit + ")";
  if (scale.gamma == 0.5) bar.label += ", square-root scale";
  bar.unit = unit_px;
  return bar;
}

std::string title_text(const Observation& observation, const SkyPictureOptions& options) {
  if (!options.title.empty()) return options.title;
  if (!observation.object.empty() && observation.object != "all-sky") return observation.object;
  const std::string& center = observation.phase_center_name;
  if (!center.empty() && center != "zenith") return center;
  return observation.array.name.empty() ? "Sky" : observation.array.name;
}

/// Brightest pixel in units of the scatter, robust: 1.4826 x the median of the distances from it.
std::string noise_text(const std::vector<float>& plane, bool signed_values) {
  std::vector<float> values;
  for (const float v : plane) {
    if (std::isfinite(v)) values.push_back(v);
  }
  if (values.size() < 16) return "";
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  const double top = static_cast<double>(*std::max_element(values.begin(), values.end()));
  std::nth_element(values.begin(), middle, values.end());
  const float median = *middle;
  for (float& v : values) v = std::abs(v - median);
  std::nth_element(values.begin(), middle, values.end());
  const double sigma = 1.4826 * static_cast<double>(*middle);
  if (!(sigma > 0)) return "";
  std::string line = fmt::format("scatter \u03c3 = {:.3g}", sigma);
  if (!signed_values)
    line = fmt::format("brightest {:.3g} \u03c3,  ", (top - static_cast<double>(median)) / sigma) +
           line;
  return line;
}

std::string stokes_text(const SkyImage& image, const SkyPictureOptions& options) {
  switch (image.stokes[options.plane]) {
    case 1:
      return "Stokes I";
    case 2:
      return "Stokes Q";
    case 3:
      return "Stokes U";
    case 4:
      return "Stokes V";
    case -5:
      return "XX";
    case -6:
      return "YY";
    case kPlaneReXY:
      return "Re XY";
    case kPlaneImXY:
      return "Im XY";
    default:
      return "";
  }
}

std::string data_text(const SkyImage& image, const SkyPictureOptions& options) {
  std::string when = utc_iso(image.centroid_tai_ns, image.exposure_s < 0.5 ? 3 : 1);
  if (const auto t = when.find('T'); t != std::string::npos) when[t] = ' ';
  std::string line = when + " UTC";
  const bool one = options.channel >= 0;
  const FrequencyBin bin = frequency_bin(image, std::max<std::int64_t>(options.channel, 0));
  const FrequencyAxis& f = image.frequency;
  const double center_hz = one ? bin.center_hz : f.band_center_hz();
  const double width_hz =
      one ? bin.width_hz : f.channel_width_hz * static_cast<double>(f.n_channels);
  line += fmt::format("  \u00b7  {:.6g} MHz", center_hz / 1e6);
  if (width_hz > 0)
    line += width_hz < 1e6 ? fmt::format(", {:.4g} kHz wide", width_hz / 1e3)
                           : fmt::format(", {:.4g} MHz wide", width_hz / 1e6);
  if (image.exposure_s > 0) line += "  \u00b7  " + duration_text(image.exposure_s);
  const double loss = image.metadata.loss_ppm;
  if (loss == 0) line += "  \u00b7  nothing lost";
  if (loss > 0)
    line += loss < 1e3 ? fmt::format("  \u00b7  {:.3g} ppm lost", loss)
                       : fmt::format("  \u00b7  {:.3g} % lost", loss / 1e4);
  const std::int64_t n_dead = image.metadata.n_dead_inputs;
  if (n_dead > 0) line += fmt::format("  \u00b7  {} dead input{}", n_dead, n_dead == 1 ? "" : "s");
  return line;
}

std::string making_text(const SkyImage& image) {
  std::string text =
      image.metadata.implementation.empty() ? image.metadata.path : image.metadata.implementation;
  if (!image.metadata.function.empty())
    text += (text.empty() ? "" : ", ") + image.metadata.function;
  return text;
}

std::vector<SkyMark> marks_of(const SkyImage& image, const Observation& observation,
                              const SkyPictureOptions& options) {
  std::vector<SkyMark> marks;
  const Vector3 center = image_axes(image, observation)[2];
  const auto put = [&](const std::string& name, const Vector3& enu) {
    const bool known = std::any_of(marks.begin(), marks.end(),
                                   [&](const SkyMark& mark) { return mark.name == name; });
    if (!known && enu[2] > 0 && dot(center, enu) > 0) marks.push_back({name, enu});
  };
  for (const WatchTarget& target : options.watch)
    put(target.name, enu_of_direction(observation.array,
                                      target.direction(image.centroid_tai_ns, &observation.array),
                                      image.centroid_tai_ns, observation.earth_orientation));
  if (options.sources) {
    for (const auto& target : visible_targets(observation.array, image.centroid_tai_ns, 0,
                                              observation.earth_orientation))
      put(target.name, target.enu);
  }
  return marks;
}

// For small angles the beam is |mean_a exp(2 pi i u_a.s)|^2 = exp(-(2 pi)^2 s^T C s), C the
// covariance of the positions in wavelengths: half power at 2 pi sqrt(s^T C s) = sqrt(ln 2).
std::optional<LobeShape> lobe_of(const SkyImage& image, const Observation& observation) {
  if (image.beam)  // what the header says
    return LobeShape{image.beam->major_rad, image.beam->minor_rad, image.beam->angle_rad};
  const auto [xx, xy, yy] = position_covariance(image, observation);
  const double middle = (xx + yy) / 2, spread = std::hypot((xx - yy) / 2, xy);
  if (!(middle - spread > 1e-3)) return std::nullopt;  // a line of antennas, or one
  const double half = std::sqrt(std::log(2.0)) / (2 * kPi);
  const double minor_from_l_rad = 0.5 * std::atan2(2 * xy, xx - yy);
  // The major axis is across: its angle from m through l is minus that of the minor axis from l.
  return LobeShape{2 * half / std::sqrt(middle - spread), 2 * half / std::sqrt(middle + spread),
                   -minor_from_l_rad};
}

std::string lobe_text(const LobeShape& lobe) {
  const double major_deg = lobe.major / kDegree_rad, minor_deg = lobe.minor / kDegree_rad;
  if (major_deg < 1)
    return fmt::format("beam {:.3g}' \u00d7 {:.3g}'", 60 * major_deg, 60 * minor_deg);
  return fmt::format("beam {:.2g}\u00b0 \u00d7 {:.2g}\u00b0", major_deg, minor_deg);
}

}  // namespace ryle::plot
