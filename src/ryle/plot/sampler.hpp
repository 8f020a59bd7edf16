// SPDX-License-Identifier: BSD-3-Clause
// Values of a plane between its pixels. Private to plot/.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace ryle::plot {

/// Catmull-Rom interpolation; where a neighbour is missing (horizon), a mean of those present.
class Sampler {
 public:
  Sampler(const std::vector<float>& plane, std::int64_t n) : plane_(plane), n_(n) {}
  double operator()(double x, double y) const {
    const auto x0 = static_cast<std::int64_t>(std::floor(x)) - 1,
               y0 = static_cast<std::int64_t>(std::floor(y)) - 1;
    const double fx = x - static_cast<double>(x0) - 1, fy = y - static_cast<double>(y0) - 1;
    if (x0 < 0 || y0 < 0 || x0 + 4 > n_ || y0 + 4 > n_) return nearby(x, y);
    double wx[4], wy[4];
    weights(fx, wx);
    weights(fy, wy);
    double sum = 0;
    for (int j = 0; j < 4; ++j) {
      const float* row = plane_.data() + (y0 + j) * n_ + x0;
      sum += wy[j] * (wx[0] * static_cast<double>(row[0]) + wx[1] * static_cast<double>(row[1]) +
                      wx[2] * static_cast<double>(row[2]) + wx[3] * static_cast<double>(row[3]));
    }
    return std::isfinite(sum) ? sum : nearby(x, y);
  }

 private:
  static void weights(double t, double* w) {
    w[0] = 0.5 * t * (t * (2 - t) - 1);
    w[1] = 0.5 * (t * t * (3 * t - 5) + 2);
    w[2] = 0.5 * t * (t * (4 - 3 * t) + 1);
    w[3] = 0.5 * t * t * (t - 1);
  }
  double nearby(double x, double y) const {
    const auto x0 = static_cast<std::int64_t>(std::floor(x)),
               y0 = static_cast<std::int64_t>(std::floor(y));
    double sum = 0, total = 0;
    for (std::int64_t j = std::max<std::int64_t>(0, y0 - 1); j < std::min(n_, y0 + 3); ++j) {
      for (std::int64_t i = std::max<std::int64_t>(0, x0 - 1); i < std::min(n_, x0 + 3); ++i) {
        const float v = plane_[j * n_ + i];
        if (!std::isfinite(v)) continue;
        const double dx = x - static_cast<double>(i), dy = y - static_cast<double>(j);
        const double w = std::exp(-2 * (dx * dx + dy * dy));
        sum += w * static_cast<double>(v);
        total += w;
      }
    }
    return total > 0 ? sum / total : std::numeric_limits<double>::quiet_NaN();
  }
  const std::vector<float>& plane_;
  std::int64_t n_;
};

}  // namespace ryle::plot
