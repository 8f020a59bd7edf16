// SPDX-License-Identifier: BSD-3-Clause
// What an image knows of itself: its bins, its place on the sky, its planes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/image/image_file.hpp"

namespace ryle {

std::int64_t channels_per_bin(const SkyImage& image) {
  const std::int64_t n = image.frequency.n_channels;
  std::int64_t b = image.n_channels_per_bin;
  if (b == 0) b = image.n_channels == 1 ? std::max<std::int64_t>(n, 1) : 1;
  // An axis without a number of channels (0) says nothing that could be wrong.
  if (b < 1 || (n > 0 && (n + b - 1) / b != image.n_channels)) {
    throw ConfigError("a sky image of " + std::to_string(image.n_channels) + " planes of " +
                      std::to_string(b) + " channels does not hold " + std::to_string(n) +
                      " channels; give n_channels_per_bin and the axis of the data channels");
  }
  return b;
}

FrequencyAxis bin_axis(const SkyImage& image) {
  const auto b = static_cast<double>(channels_per_bin(image));
  const FrequencyAxis& f = image.frequency;
  return {f.first_center_hz + (b - 1) / 2 * f.channel_width_hz, b * f.channel_width_hz,
          image.n_channels};
}

FrequencyBin frequency_bin(const SkyImage& image, std::int64_t bin) {
  const std::int64_t b = channels_per_bin(image);
  const FrequencyAxis& f = image.frequency;
  const std::int64_t first = bin * b;
  const std::int64_t count = f.n_channels > 0 ? std::min(b, f.n_channels - first) : b;
  return {f.center_hz(first) + 0.5 * static_cast<double>(count - 1) * f.channel_width_hz,
          static_cast<double>(count) * f.channel_width_hz, count};
}

void place_at_zenith(SkyImage& image, const ArrayLayout& array, const EarthOrientation& eo) {
  image.center = zenith(array, image.centroid_tai_ns, eo);
  const auto axes = uvw_axes(array, image.center, image.centroid_tai_ns, eo);
  // ICRS east and north at the zenith, both given along the horizon: north of date is (0, 1).
  image.north_angle_rad = std::atan2(axes[0][1], axes[1][1]);
}

std::array<Vector3, 3> image_axes(const SkyImage& image, const Observation& observation) {
  const auto sky = uvw_axes(observation.array, image.center, image.centroid_tai_ns,
                            observation.earth_orientation);
  const double c = std::cos(image.north_angle_rad);
  const double s = std::sin(image.north_angle_rad);
  std::array<Vector3, 3> axes = sky;
  for (std::size_t k = 0; k < 3; ++k) {
    axes[0][k] = c * sky[0][k] - s * sky[1][k];
    axes[1][k] = s * sky[0][k] + c * sky[1][k];
  }
  return axes;
}

SkyPosition place_of(const SkyImage& image, const Observation& observation, double l, double m) {
  // l = l' + alpha t, m = m' + beta t, n = 1 - t on the unit sphere: a t^2 - 2 b t + r^2 = 0.
  const double a = 1 + image.plane_alpha * image.plane_alpha + image.plane_beta * image.plane_beta;
  const double b = 1 - l * image.plane_alpha - m * image.plane_beta;
  const double r2 = l * l + m * m;
  const double discriminant = b * b - a * r2;
  SkyPosition place;
  if (!(discriminant >= 0)) {
    const double none = std::numeric_limits<double>::quiet_NaN();
    return {l, m, {none, none, none}, {none, none}, none, none};
  }
  const double t = r2 / (b + std::sqrt(discriminant));
  place.l = l + image.plane_alpha * t;
  place.m = m + image.plane_beta * t;
  const auto axes = image_axes(image, observation);
  for (std::size_t k = 0; k < 3; ++k)
    place.enu[k] = place.l * axes[0][k] + place.m * axes[1][k] + (1 - t) * axes[2][k];
  place.direction = direction_of_enu(observation.array, place.enu, image.centroid_tai_ns,
                                     observation.earth_orientation);
  const double azimuth_rad = std::atan2(place.enu[0], place.enu[1]);
  place.azimuth_rad = azimuth_rad < 0 ? azimuth_rad + 2 * kPi : azimuth_rad;
  place.elevation_rad = std::atan2(place.enu[2], std::hypot(place.enu[0], place.enu[1]));
  return place;
}

std::optional<std::array<double, 2>> point_of(const SkyImage& image, const Observation& observation,
                                              const SkyDirection& direction) {
  const Vector3 enu = enu_of_direction(observation.array, direction, image.centroid_tai_ns,
                                       observation.earth_orientation);
  const auto axes = image_axes(image, observation);
  Vector3 s{};
  for (std::size_t row = 0; row < 3; ++row)
    s[row] = axes[row][0] * enu[0] + axes[row][1] * enu[1] + axes[row][2] * enu[2];
  if (!(s[2] > 0)) return std::nullopt;
  return std::array<double, 2>{s[0] - image.plane_alpha * (1 - s[2]),
                               s[1] - image.plane_beta * (1 - s[2])};
}

std::string place_text(const SkyPosition& place) {
  return fmt::format("RA {:.3f} deg, Dec {:.3f} deg, azimuth {:.2f} deg, elevation {:.2f} deg",
                     place.direction.ra_rad / kDegree_rad, place.direction.dec_rad / kDegree_rad,
                     place.azimuth_rad / kDegree_rad, place.elevation_rad / kDegree_rad);
}

void take_planes(SkyImage& image, std::span<const float> pixels, std::span<const double> weights,
                 std::int64_t n_bins, const std::vector<int>& planes) {
  const auto n_planes = static_cast<std::int64_t>(planes.size());
  const std::int64_t size = image.plane_size();
  if (n_bins < 1 || n_planes < 1 || size < 1 ||
      static_cast<std::int64_t>(pixels.size()) != n_bins * n_planes * size ||
      (!weights.empty() && static_cast<std::int64_t>(weights.size()) != 3 * n_bins)) {
    throw ConfigError("a sky image cannot take " + std::to_string(pixels.size()) + " pixels and " +
                      std::to_string(weights.size()) + " weights as " + std::to_string(n_bins) +
                      " bins x " + std::to_string(n_planes) + " planes x " + std::to_string(size) +
                      " pixels");
  }
  image.n_channels = n_bins;
  image.stokes = planes;
  image.pixels.resize(pixels.size());
  image.weights.assign(weights.empty() ? 0 : static_cast<std::size_t>(n_bins * n_planes), 0.0F);
  for (std::int64_t p = 0; p < n_planes; ++p) {
    for (std::int64_t bin = 0; bin < n_bins; ++bin) {
      const float* from = pixels.data() + (bin * n_planes + p) * size;
      std::copy(from, from + size, image.pixels.data() + (p * n_bins + bin) * size);
      if (weights.empty()) continue;
      const double* w = weights.data() + 3 * bin;
      const int code = planes[p];
      const double weight = code == 1 || code == 2 ? w[0] + w[1]
                            : code == -5           ? w[0]
                            : code == -6           ? w[1]
                                                   : w[2];
      image.weights[p * n_bins + bin] = static_cast<float>(weight);
    }
  }
}

std::string image_file_name(const std::string& stem, const SkyImage& image,
                            const std::string& suffix) {
  std::string when = utc_iso(image.start_tai_ns, image.exposure_s < 1 ? 9 : 3);
  std::erase(when, '-');
  std::erase(when, ':');
  return stem + "_" + when + "Z" + suffix;
}

}  // namespace ryle
