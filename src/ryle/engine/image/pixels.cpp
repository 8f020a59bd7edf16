// SPDX-License-Identifier: BSD-3-Clause
// Pixels of the slant orthographic image and the directions behind them.
#include <cmath>
#include <limits>

#include "ryle/core/units.hpp"
#include "ryle/engine/image/geometry.hpp"

namespace ryle::image {

std::array<double, 3> direction_of_pixel(const AllSkyConfig& config, const ArrayPlane& plane,
                                         double x, double y) {
  const double half = 0.5 * static_cast<double>(config.n_pixels);
  const double step = 1 / (static_cast<double>(config.n_pixels) * config.cell_wavelengths);
  const double slant_l = -(x - half) * step;
  const double slant_m = (y - half) * step;
  // l = l' + alpha t, m = m' + beta t, n = 1 - t on the unit sphere: a t^2 - 2 b t + r^2 = 0. The
  // smaller root is the sky above the plane, written without cancellation near zenith.
  const double a = 1 + plane.alpha * plane.alpha + plane.beta * plane.beta;
  const double b = 1 - slant_l * plane.alpha - slant_m * plane.beta;
  const double r2 = slant_l * slant_l + slant_m * slant_m;
  const double discriminant = b * b - a * r2;
  if (!(discriminant >= 0)) return {slant_l, slant_m, kNaN};
  const double t = r2 / (b + std::sqrt(discriminant));
  if (!(t < 1)) return {slant_l, slant_m, kNaN};
  return {slant_l + plane.alpha * t, slant_m + plane.beta * t, 1 - t};
}

std::array<double, 2> pixel_of_direction(const AllSkyConfig& config, const ArrayPlane& plane,
                                         const std::array<double, 3>& direction) {
  const double half = 0.5 * static_cast<double>(config.n_pixels);
  const double pixels_per_cosine = static_cast<double>(config.n_pixels) * config.cell_wavelengths;
  const auto& [l, m, n] = direction;
  const double slant_l = l - plane.alpha * (1 - n);
  const double slant_m = m - plane.beta * (1 - n);
  return {half - slant_l * pixels_per_cosine, half + slant_m * pixels_per_cosine};
}

}  // namespace ryle::image
