// SPDX-License-Identifier: BSD-3-Clause
// Predicted error of each path: aliases of the antenna function, and arithmetic.
#include <algorithm>
#include <cmath>

#include "ryle/core/units.hpp"
#include "ryle/engine/image/all_sky_limits.hpp"
#include "ryle/engine/image/geometry.hpp"

namespace ryle::image {
namespace {

// @eq w^(xi) = int w(u) cos(2 pi xi u) du, xi in turns per cell; midpoint rule in u = (k/2)
// sin(theta)
double transform_of_function(const AntennaFunction& function, double turns_per_cell) {
  constexpr int kSteps = 200;
  const auto k = static_cast<double>(function.support);
  double sum = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double theta_rad = kPi * ((i + 0.5) / kSteps - 0.5);
    sum += std::exp(function.beta_per_cell * k * (std::cos(theta_rad) - 1)) * std::cos(theta_rad) *
           std::cos(kPi * turns_per_cell * k * std::sin(theta_rad));
  }
  return sum;
}

// Power of the aliases, relative to w^, along one axis.
double alias_power(const AllSkyConfig& config, double cosine) {
  const double xi = cosine * config.cell_wavelengths;
  const double main = transform_of_function(config.function, xi);
  double power = 0;
  for (const int m : {-2, -1, 1, 2}) {
    const double alias = transform_of_function(config.function, xi + m) / main;
    power += alias * alias;
  }
  return power;
}

// Rms over the disc of radius 0.8 of the relative gain error of one antenna.
double antenna_error(const AllSkyConfig& config) {
  constexpr int kSteps = 25;
  constexpr double kRadius = 0.8;
  std::array<double, kSteps> power{};
  for (int i = 0; i < kSteps; ++i) {
    power[i] = alias_power(config, kRadius * (i + 0.5) / kSteps);
  }
  double sum = 0, n = 0;
  for (int i = 0; i < kSteps; ++i) {
    for (int j = 0; j < kSteps; ++j) {
      if ((i + 0.5) * (i + 0.5) + (j + 0.5) * (j + 0.5) > kSteps * kSteps) continue;
      sum += power[i] + power[j];
      n += 1;
    }
  }
  return std::sqrt(sum / n);
}

// Gridding. The factors reproduce the measured table of the README (LWA-SV, 255 antennas) within
// 20 % for both supports, both cells and all radii; sub-cell offsets are independent, so the error
// falls with the root of the number of antennas.
double gridding_error(const AllSkyConfig& config, bool direct) {
  const auto used = antennas_used(config);
  const auto n = static_cast<double>(std::count(used.begin(), used.end(), 1));
  return (direct ? 0.034 : 0.012) * std::sqrt(255 / std::max(n, 1.0)) * antenna_error(config);
}

}  // namespace

double path_error(const AllSkyConfig& config, Path path) {
  // Arithmetic as emulated on the sky of image.md 7: 1e-7 fp32; dynamic range 2.4e4 .. 7.5e4 for
  // half-precision grids, 1e5 for half-precision matrix products.
  switch (path) {
    case Path::efield:
      return std::hypot(1e-7, gridding_error(config, false));
    case Path::efield_half:
      return std::hypot(4e-5, gridding_error(config, false));
    case Path::vis_grid:
      return std::hypot(1e-7, gridding_error(config, !config.function.correlated));
    case Path::vis_dft:
      return 1e-5;
    case Path::efield_dft:
      return 1.5e-5;
    case Path::automatic:
      break;
  }
  return 0;
}

}  // namespace ryle::image
