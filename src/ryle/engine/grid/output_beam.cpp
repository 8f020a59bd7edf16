// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/output_beam.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "ryle/core/error.hpp"

namespace ryle::grid {
namespace {

/// Points of Simpson's rule in the angle, even.
constexpr int kSteps = 400;
/// Points round the circle, a third of the beam's width apart at most: the trapezoid of a Gaussian
/// every h = 0.33 FWHM = 0.79 sigma errs by exp(-2 (pi sigma / h)^2) < 1e-13.
int points_round(double support_rad, double beam_fwhm_rad) {
  const double n = 2 * std::numbers::pi * support_rad / (0.33 * beam_fwhm_rad);
  return static_cast<int>(std::clamp(std::ceil(n), 96.0, 4096.0));
}

struct Node {
  double x = 0, y = 0, weight = 0;  ///< east, north; K times the piece of area
};

class Profile {
 public:
  Profile(const Convolution& f, double beam_fwhm_rad)
      : per_square_(4 * std::log(2.0) / (beam_fwhm_rad * beam_fwhm_rad)) {
    const double step = f.support_rad / kSteps;
    const int n_round = points_round(f.support_rad, beam_fwhm_rad);
    for (int i = 1; i <= kSteps; ++i) {
      const double simpson = i == kSteps ? 1 : i % 2 == 1 ? 4 : 2;
      // The support is open: its value at the edge is the limit from inside.
      const double theta = i * step, inside = i == kSteps ? theta * (1 - 1e-12) : theta;
      const double area = simpson / 3 * step * theta * 2 * std::numbers::pi / n_round;
      for (int k = 0; k < n_round; ++k) {
        const double angle_rad = 2 * std::numbers::pi * k / n_round;
        const double x = theta * std::sin(angle_rad), y = theta * std::cos(angle_rad);
        const double w = value(f, inside, x, y);
        nodes_.push_back({x, y, w * area});
        sum_ += w * area;
        squares_ += w * w * area;
      }
    }
  }
  double sum() const { return sum_; }
  double squares() const { return squares_; }
  double beam_area() const { return std::numbers::pi / per_square_; }
  double at(double x, double y) const {
    double p = 0;
    for (const Node& n : nodes_) {
      const double dx = x - n.x, dy = y - n.y;
      p += n.weight * std::exp(-per_square_ * (dx * dx + dy * dy));
    }
    return p / sum_;
  }
  /// Where the profile has fallen to half, times two, along a position angle.
  double width(double position_angle_rad, double beam_fwhm_rad, double support_rad) const {
    const double e = std::sin(position_angle_rad), n = std::cos(position_angle_rad);
    const double half = 0.5 * at(0, 0);
    double low = 0, high = 0.5 * beam_fwhm_rad;
    while (at(high * e, high * n) > half && high < beam_fwhm_rad + support_rad) {
      low = high;
      high += 0.25 * beam_fwhm_rad;
    }
    for (int k = 0; k < 20; ++k) {
      const double middle = 0.5 * (low + high);
      (at(middle * e, middle * n) > half ? low : high) = middle;
    }
    return low + high;
  }

 private:
  double per_square_;
  std::vector<Node> nodes_;
  double sum_ = 0, squares_ = 0;
};

}  // namespace

OutputBeam output_beam(const Convolution& f, double beam_fwhm_rad) {
  check(f);
  if (!(beam_fwhm_rad > 0) || !std::isfinite(beam_fwhm_rad))
    throw ConfigError("the beam of a map needs the width of the telescope's beam, above 0");
  const Profile profile(f, beam_fwhm_rad);
  const double peak = profile.at(0, 0);
  if (!(profile.sum() > 0) || !(peak > 0))
    throw ConfigError(
        "convolution function: its weights sum to 0 or less over the support; a smaller radius "
        "would do");
  OutputBeam beam;
  beam.area_factor = 1 / peak;
  beam.n_beams = profile.sum() * profile.sum() / profile.squares() / profile.beam_area();
  beam.position_angle_rad = is_radial(f) ? 0 : f.position_angle_rad;
  beam.major_rad = profile.width(beam.position_angle_rad, beam_fwhm_rad, f.support_rad);
  beam.minor_rad = is_radial(f) ? beam.major_rad
                                : profile.width(beam.position_angle_rad + 0.5 * std::numbers::pi,
                                                beam_fwhm_rad, f.support_rad);
  return beam;
}

}  // namespace ryle::grid
