// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/dirty_beam.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "ryle/core/units.hpp"
#include "ryle/engine/image/geometry.hpp"

namespace ryle::image {
namespace {

constexpr double kLobe = 0.5;             // the fit takes what is above
constexpr std::int64_t kMaxChannels = 8;  // a wide band smears the beam smoothly

/// uu, uv, vv: second moments of the baselines, in waves.
struct BaselineMoments {
  double uu = 0, uv = 0, vv = 0;
};

struct Axes {
  double large = 0, small = 0;  ///< eigenvalues
  double angle_rad = 0;         ///< of the direction of the small one, from m (v) through l (u)
};

/// Principal axes of [[a, b], [b, c]] over (l, m).
Axes axes_of(double a, double b, double c) {
  const double middle = (a + c) / 2;
  const double spread = std::hypot((a - c) / 2, b);
  // The direction of the large eigenvalue is atan2(2b, a - c) / 2 from l through m.
  const double large_rad = 0.5 * std::atan2(2 * b, a - c);
  return {middle + spread, middle - spread, -large_rad};
}

/// A picture that holds the lobe of baselines with these moments. None for baselines on a line.
/// @eq B = 1 - 2 pi^2 (uu l^2 + 2 uv l m + vv m^2): half maximum of the Gaussian with this
///     curvature at sqrt(2 ln 2) / (2 pi sqrt(uu))
std::optional<Config> picture_of_lobe(const BaselineMoments& moments) {
  const Axes axes = axes_of(moments.uu, moments.uv, moments.vv);
  if (!(axes.large > 0) || !(axes.small > 1e-6 * axes.large)) return std::nullopt;
  const auto full_width = [](double moment) {
    return std::sqrt(2 * std::numbers::ln2) / (kPi * std::sqrt(moment));
  };
  const double wide = full_width(axes.small);
  const double narrow = full_width(axes.large);
  if (wide > 1) return std::nullopt;  // wider than the sky
  Config geometry;
  geometry.width_direction_cosines = 3 * wide;
  const auto n =
      static_cast<std::int64_t>(std::ceil(10 * geometry.width_direction_cosines / narrow));
  geometry.n_pixels = std::clamp<std::int64_t>(n + n % 2, 32, 256);
  return geometry;
}

/// The pixels above kLobe that hang together with the middle.
std::vector<std::int64_t> main_lobe(std::int64_t n, const std::vector<double>& beam) {
  std::vector<std::uint8_t> seen(beam.size(), 0);
  std::vector<std::int64_t> lobe{n / 2 * n + n / 2};
  seen[lobe.front()] = 1;
  for (std::size_t k = 0; k < lobe.size(); ++k) {
    const std::int64_t x = lobe[k] % n;
    const std::int64_t y = lobe[k] / n;
    if (x == 0 || y == 0 || x == n - 1 || y == n - 1) return {};  // it does not close
    for (const std::int64_t next : {lobe[k] - 1, lobe[k] + 1, lobe[k] - n, lobe[k] + n}) {
      const auto at = static_cast<std::size_t>(next);
      if (seen[at] != 0 || !(beam[at] > kLobe)) continue;
      seen[at] = 1;
      lobe.push_back(next);
    }
  }
  return lobe;
}

/// Solves the symmetric 3 x 3 system by Cramer's rule; none when it is singular.
std::optional<std::array<double, 3>> solve(const std::array<std::array<double, 3>, 3>& a,
                                           const std::array<double, 3>& b) {
  const auto det = [](const std::array<std::array<double, 3>, 3>& m) {
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
           m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
           m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
  };
  const double all = det(a);
  if (!(std::abs(all) > 1e-9 * std::abs(a[0][0] * a[1][1] * a[2][2]))) return std::nullopt;
  std::array<double, 3> x{};
  for (std::size_t k = 0; k < 3; ++k) {
    auto with = a;
    for (std::size_t row = 0; row < 3; ++row) with[row][k] = b[row];
    x[k] = det(with) / all;
  }
  return x;
}

/// A few long baselines beside many short ones curve the peak of a lobe that is wider below.
template <class Draw>
std::optional<BeamShape> fit_in_growing_pictures(Config picture, const Draw& draw) {
  for (; picture.width_direction_cosines <= 4; picture.width_direction_cosines *= 2) {
    if (auto shape = fit_beam(picture, draw(picture))) return shape;
  }
  return std::nullopt;
}

}  // namespace

std::optional<BeamShape> fit_beam(const Config& geometry, const std::vector<double>& beam) {
  const std::int64_t n = geometry.n_pixels;
  const auto lobe = main_lobe(n, beam);
  std::array<std::array<double, 3>, 3> normal{};
  std::array<double, 3> right{};
  // Cells, not direction cosines: the system is then well scaled.
  for (const std::int64_t pixel : lobe) {
    const auto l = static_cast<double>(n / 2 - pixel % n);
    const auto m = static_cast<double>(pixel / n - n / 2);
    const double value = beam[pixel];
    const std::array<double, 3> terms{l * l, l * m, m * m};
    const double weight = value * value;
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) normal[i][j] += weight * terms[i] * terms[j];
      right[i] -= weight * terms[i] * std::log(value);
    }
  }
  const auto x = solve(normal, right);
  if (!x) return std::nullopt;
  const Axes axes = axes_of((*x)[0], (*x)[1] / 2, (*x)[2]);
  if (!(axes.small > 0)) return std::nullopt;
  const double cell = geometry.width_direction_cosines / static_cast<double>(n);
  const auto full_width = [&](double curvature) {
    return 2 * cell * std::sqrt(std::numbers::ln2 / curvature);
  };
  return BeamShape{full_width(axes.small), full_width(axes.large), axes.angle_rad};
}

std::optional<BeamShape> dirty_beam(Queue& queue, const std::vector<Sample>& samples) {
  BaselineMoments moments;
  double total = 0;
  std::vector<Sample> ones;
  ones.reserve(samples.size());
  for (Sample sample : samples) {
    if (!(sample.weight > 0)) continue;
    moments.uu += sample.weight * sample.u * sample.u;
    moments.uv += sample.weight * sample.u * sample.v;
    moments.vv += sample.weight * sample.v * sample.v;
    total += sample.weight;
    sample.visibility = 1;
    ones.push_back(sample);
  }
  if (!(total > 0)) return std::nullopt;
  const auto geometry =
      picture_of_lobe({moments.uu / total, moments.uv / total, moments.vv / total});
  if (!geometry) return std::nullopt;
  return fit_in_growing_pictures(*geometry, [&](const Config& picture) {
    std::vector<double> beam;
    make_imager(queue, picture)->execute(queue, ones, beam);
    return beam;
  });
}

std::optional<BeamShape> dirty_beam(const AllSkyConfig& config,
                                    std::span<const std::uint8_t> unused) {
  AllSkyConfig used = config;
  for (std::size_t p = 0; p < unused.size(); ++p) used.inputs[p].bad |= unused[p] != 0;
  const auto flags = antennas_used(used);
  std::vector<std::array<double, 3>> places;
  std::array<double, 3> mean{};
  for (std::size_t a = 0; a < flags.size(); ++a) {
    if (flags[a] == 0) continue;
    places.push_back(config.antenna_enu_m[a]);
    for (std::size_t k = 0; k < 3; ++k) mean[k] += places.back()[k];
  }
  const auto n_places = static_cast<double>(places.size());
  if (places.size() < 3) return std::nullopt;
  std::vector<double> per_m;
  const std::int64_t n_channels = config.channels.n_channels;
  const std::int64_t n_taken = std::min(n_channels, kMaxChannels);
  for (std::int64_t k = 0; k < n_taken; ++k) {
    const std::int64_t channel = (2 * k + 1) * n_channels / (2 * n_taken);
    per_m.push_back(config.channels.center_hz(channel) / kSpeedOfLight_m_per_s);
  }
  const double middle_per_m = per_m[per_m.size() / 2];
  BaselineMoments moments;
  for (auto& place : places) {
    for (std::size_t k = 0; k < 3; ++k) place[k] -= mean[k] / n_places;
    // Differences of two independent places: twice the variance.
    moments.uu += 2 * place[0] * place[0] * middle_per_m * middle_per_m / n_places;
    moments.uv += 2 * place[0] * place[1] * middle_per_m * middle_per_m / n_places;
    moments.vv += 2 * place[1] * place[1] * middle_per_m * middle_per_m / n_places;
  }
  const auto geometry = picture_of_lobe(moments);
  if (!geometry) return std::nullopt;
  const double autos = config.remove_autos ? n_places : 0;
  const auto power = [&](const Direction& direction) {
    double sum = 0;
    for (const double scale : per_m) {
      cf64 field{};
      for (const auto& place : places) {
        field +=
            std::polar(1.0, 2 * kPi * scale * (place[0] * direction.l + place[1] * direction.m));
      }
      sum += (std::norm(field) - autos) / (n_places * n_places - autos);
    }
    return sum / static_cast<double>(per_m.size());
  };
  return fit_in_growing_pictures(*geometry, [&](const Config& picture) {
    const std::int64_t n = picture.n_pixels;
    std::vector<double> beam(n * n);
    for (std::int64_t pixel = 0; pixel < n * n; ++pixel) {
      beam[pixel] = power(direction_of_pixel(picture, static_cast<double>(pixel % n),
                                             static_cast<double>(pixel / n)));
    }
    return beam;
  });
}

}  // namespace ryle::image
