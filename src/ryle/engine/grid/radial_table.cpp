// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/radial_table.hpp"

#include <algorithm>
#include <cmath>

namespace ryle::grid::detail {
namespace {

class RadialProfile {
 public:
  explicit RadialProfile(const Convolution& f)
      : f_(f), end_(f.support_rad * f.support_rad * (1 - 1e-12)) {}
  double step() const { return f_.support_rad * f_.support_rad / kRadialIntervals; }
  double at(double theta2) const {
    const double theta = std::sqrt(std::clamp(theta2, 0.0, end_));
    return value(f_, theta, theta, 0);
  }
  // A table given by the user ends at its last row: slopes are taken within the support.
  double slope(double theta2) const {
    const double h = 0.01 * step(), low = std::max(0.0, theta2 - h),
                 high = std::min(theta2 + h, end_);
    return (at(high) - at(low)) / (high - low) * step();
  }

 private:
  const Convolution& f_;
  double end_;
};

// Between the ends, where cubics are exact by construction, and where rows of the user lie.
bool is_close(const std::vector<float>& cubic, const RadialProfile& profile, const Convolution& f) {
  const auto differs = [&](double place) {
    const auto k = std::min<std::size_t>(static_cast<std::size_t>(place), kRadialIntervals - 1);
    const auto r = static_cast<float>(place - static_cast<double>(k));
    const float* a = cubic.data() + 4 * k;
    const float table = a[0] + r * (a[1] + r * (a[2] + r * a[3]));
    return std::abs(static_cast<double>(table) - profile.at(place * profile.step())) > kRadialError;
  };
  for (int k = 0; k < kRadialIntervals; ++k)
    for (const double r : {0.21, 0.5, 0.79})
      if (differs(k + r)) return false;
  return std::none_of(f.table_theta_rad.begin(), f.table_theta_rad.end(), [&](double theta) {
    return f.function == Function::table && theta < f.support_rad &&
           differs(theta * theta / profile.step());
  });
}

}  // namespace

std::vector<float> radial_table(const Convolution& f) {
  const RadialProfile profile(f);
  std::vector<float> cubic;
  cubic.reserve(4 * kRadialIntervals);
  for (int k = 0; k < kRadialIntervals; ++k) {
    const double t0 = k * profile.step(), t1 = t0 + profile.step();
    const double y0 = profile.at(t0), y1 = profile.at(t1);
    const double m0 = profile.slope(t0), m1 = profile.slope(t1);
    for (const double a : {y0, m0, 3 * (y1 - y0) - 2 * m0 - m1, 2 * (y0 - y1) + m0 + m1})
      cubic.push_back(static_cast<float>(a));
  }
  if (!is_close(cubic, profile, f)) cubic.clear();
  return cubic;
}

}  // namespace ryle::grid::detail
