// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ryle/core/error.hpp"

namespace ryle::image {
namespace {

// Mean of the two middle values for an even number; reorders its argument.
double median_in_place(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 != 0) return *middle;
  return 0.5 * (*middle + *std::max_element(values.begin(), middle));
}

// Top of the second-order expansion (central differences) round a maximum, as an offset from the
// middle; the mixed term matters because the beam of an array is seldom aligned with the axes. 0
// where a neighbour is missing or there is no top.
std::array<double, 2> paraboloid_top(const std::array<std::array<double, 3>, 3>& f) {
  const double b = 0.5 * (f[1][2] - f[1][0]), c = 0.5 * (f[2][1] - f[0][1]);
  const double d = f[1][0] - 2 * f[1][1] + f[1][2], g = f[0][1] - 2 * f[1][1] + f[2][1];
  const double e = 0.25 * (f[2][2] - f[2][0] - f[0][2] + f[0][0]);
  const double determinant = d * g - e * e;
  if (!(determinant > 0) || d >= 0) return {0, 0};
  const double x = (e * c - g * b) / determinant, y = (e * b - d * c) / determinant;
  return {std::clamp(x, -1.0, 1.0), std::clamp(y, -1.0, 1.0)};
}

}  // namespace

Spread spread_of(const std::vector<double>& image) {
  std::vector<double> values;
  values.reserve(image.size());
  for (const double v : image) {
    if (std::isfinite(v)) values.push_back(v);
  }
  if (values.empty()) return {};
  Spread spread;
  spread.n_pixels = static_cast<std::int64_t>(values.size());
  spread.median = median_in_place(values);
  for (double& v : values) v = std::abs(v - spread.median);
  spread.sigma = 1.4826 * median_in_place(values);
  return spread;
}

Peak peak_near(const Config& config, const std::vector<double>& image, const Direction& center,
               double radius) {
  const std::int64_t n = config.n_pixels;
  if (static_cast<std::int64_t>(image.size()) != n * n) {
    throw ConfigError("image of " + std::to_string(image.size()) + " pixels where " +
                      std::to_string(n * n) + " were configured");
  }
  const auto at = [&](std::int64_t x, std::int64_t y) {
    return x < 0 || y < 0 || x >= n || y >= n ? std::numeric_limits<double>::quiet_NaN()
                                              : image[y * n + x];
  };
  Peak peak;
  bool found = false;
  for (std::int64_t y = 0; y < n; ++y) {
    for (std::int64_t x = 0; x < n; ++x) {
      const auto d = direction_of_pixel(config, static_cast<double>(x), static_cast<double>(y));
      if (std::isnan(at(x, y)) || std::hypot(d.l - center.l, d.m - center.m) > radius) continue;
      if (found && at(x, y) <= peak.value) continue;
      found = true;
      peak.value = at(x, y);
      peak.x = x;
      peak.y = y;
    }
  }
  if (!found) throw ConfigError("no pixel of the image holds a value where a peak was looked for");
  std::array<std::array<double, 3>, 3> around{};
  for (std::int64_t j = 0; j < 3; ++j) {
    for (std::int64_t i = 0; i < 3; ++i) {
      around[j][i] = at(peak.x + i - 1, peak.y + j - 1);
    }
  }
  const auto [dx, dy] = paraboloid_top(around);
  peak.direction = direction_of_pixel(config, static_cast<double>(peak.x) + dx,
                                      static_cast<double>(peak.y) + dy);
  const Spread spread = spread_of(image);
  peak.sigmas = spread.sigma > 0 ? (peak.value - spread.median) / spread.sigma : 0;
  return peak;
}

Peak peak_of(const Config& config, const std::vector<double>& image) {
  return peak_near(config, image, {0, 0}, std::numeric_limits<double>::infinity());
}

}  // namespace ryle::image
