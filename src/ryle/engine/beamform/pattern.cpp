// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/beamform/pattern.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/beamform/weight_bank.hpp"
#include "ryle/engine/beamform/weights.hpp"

namespace ryle::beamform {
namespace {

double dot(const Vector3& a, const Vector3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

double sinc(double x) { return std::fabs(x) < 1e-9 ? 1 : std::sin(kPi * x) / (kPi * x); }

double element_amplitude(const Element& e, const Vector3& s, double frequency_hz) {
  switch (e.pattern) {
    case ElementPattern::cosine:
      return std::pow(std::max(0.0, dot(s, e.axis)), 0.5 * e.exponent);
    case ElementPattern::aperture: {
      if (!(dot(s, e.axis) > 0)) return 0;
      const double per_m = frequency_hz / kSpeedOfLight_m_per_s;
      const Vector3& x = e.x_side;
      const Vector3 y{e.axis[1] * x[2] - e.axis[2] * x[1], e.axis[2] * x[0] - e.axis[0] * x[2],
                      e.axis[0] * x[1] - e.axis[1] * x[0]};
      return sinc(e.width_x_m * per_m * dot(s, x)) * sinc(e.width_y_m * per_m * dot(s, y));
    }
    default:
      return 1;
  }
}

// First radius at which the power falls below half of the peak, by bisection between steps.
double half_power_radius(const BeamPattern& pattern, const TangentFrame& frame, double angle_rad,
                         double half, double step, double limit) {
  const double c = std::cos(angle_rad), s = std::sin(angle_rad);
  const auto value = [&](double radius) { return pattern.power(frame.at(radius * s, radius * c)); };
  double inside = 0, outside = step;
  while (value(outside) > half) {
    inside = outside;
    outside += step;
    if (outside > limit) return std::numeric_limits<double>::quiet_NaN();
  }
  for (int k = 0; k < 40; ++k) {
    const double middle = 0.5 * (inside + outside);
    (value(middle) > half ? inside : outside) = middle;
  }
  return inside;
}

}  // namespace

Element pointed(Element element, const Vector3& enu) {
  element.axis = enu;
  const double level = std::hypot(enu[0], enu[1]);
  // Looking along azimuth A, the level side to the right is east cos A - north sin A.
  element.x_side = level < 1e-9 ? Vector3{1, 0, 0} : Vector3{enu[1] / level, -enu[0] / level, 0};
  return element;
}

std::vector<cf32> quantized_weights(std::span<const cf32> weights) {
  Config c;
  c.n_antennas = static_cast<std::int64_t>(weights.size());
  c.n_beams = c.n_channels = 1;
  detail::WeightBank bank(c);
  bank.set({weights.data(), {1, 1, c.n_antennas}});
  std::vector<cf32> codes = bank.values;
  for (cf32& w : codes) w *= bank.scale[0];
  return codes;
}

BeamPattern::BeamPattern(const ArrayLayout& array, std::span<const std::int64_t> inputs,
                         std::span<const cf32> weights, double frequency_hz, const Element& element)
    : element_(element), frequency_hz_(frequency_hz) {
  if (inputs.size() != weights.size())
    throw ConfigError("beam pattern: " + std::to_string(weights.size()) + " weights for " +
                      std::to_string(inputs.size()) + " inputs");
  double sum = 0;
  for (const cf32& w : weights) sum += std::abs(cf64(w));
  if (!(sum > 0)) throw ConfigError("beam pattern: all weights are 0");
  const double per_m = frequency_hz / kSpeedOfLight_m_per_s;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (weights[k] == cf32(0)) continue;
    const ArrayInput& input = array.inputs[inputs[k]];
    const Vector3& r = array.antennas[input.antenna].enu_m;
    const double cable_turns = frequency_hz * cable_delay_s(input, frequency_hz);
    terms_.push_back({{r[0] * per_m, r[1] * per_m, r[2] * per_m},
                      cf64(weights[k]) / sum * phasor(turns_of(-cable_turns))});
  }
}

double BeamPattern::power(const Vector3& enu) const {
  if (!(enu[2] > 0)) return 0;
  cf64 sum = 0;
  for (const Term& term : terms_) {
    sum +=
        term.weight *
        phasor(turns_of(term.turns[0] * enu[0] + term.turns[1] * enu[1] + term.turns[2] * enu[2]));
  }
  const double amplitude = element_amplitude(element_, enu, frequency_hz_);
  return std::norm(sum) * amplitude * amplitude;
}

Vector3 TangentFrame::at(double l, double m) const {
  const double squared = 1 - l * l - m * m;
  if (!(squared >= 0)) return {0, 0, 0};
  const double n = std::sqrt(squared);
  return {l * x[0] + m * y[0] + n * s[0], l * x[1] + m * y[1] + n * s[1],
          l * x[2] + m * y[2] + n * s[2]};
}

TangentFrame tangent_frame(const Vector3& enu, double latitude_rad) {
  Vector3 pole{0, std::cos(latitude_rad), std::sin(latitude_rad)};
  if (std::fabs(dot(pole, enu)) > 1 - 1e-12) pole = {0, 1, 0};
  const double along = dot(pole, enu);
  TangentFrame frame;
  frame.s = enu;
  double length = 0;
  for (int k = 0; k < 3; ++k) {
    frame.y[k] = pole[k] - along * enu[k];
    length += frame.y[k] * frame.y[k];
  }
  for (double& part : frame.y) part /= std::sqrt(length);
  const Vector3 &y = frame.y, &s = frame.s;
  frame.x = {y[1] * s[2] - y[2] * s[1], y[2] * s[0] - y[0] * s[2], y[0] * s[1] - y[1] * s[0]};
  return frame;
}

PatternGrid pattern_grid(const BeamPattern& pattern, const TangentFrame& frame,
                         std::int64_t n_pixels, double half_width) {
  if (n_pixels < 2 || n_pixels % 2 != 0 || n_pixels > 8192 || !(half_width > 0))
    throw ConfigError("beam pattern: " + std::to_string(n_pixels) +
                      " pixels; an even number from 2 to 8192 over a positive width is wanted");
  PatternGrid grid;
  grid.n_pixels = n_pixels;
  grid.cell = 2 * half_width / static_cast<double>(n_pixels);
  grid.power.resize(n_pixels * n_pixels);
  for (std::int64_t row = 0; row < n_pixels; ++row) {
    for (std::int64_t column = 0; column < n_pixels; ++column) {
      const double l = -static_cast<double>(column - n_pixels / 2) * grid.cell;
      const double m = static_cast<double>(row - n_pixels / 2) * grid.cell;
      const Vector3 s = frame.at(l, m);
      grid.power[row * n_pixels + column] =
          s[2] > 0 ? static_cast<float>(pattern.power(s)) : std::numeric_limits<float>::quiet_NaN();
    }
  }
  return grid;
}

LobeShape lobe_shape(const BeamPattern& pattern, const TangentFrame& frame, const PatternGrid& grid,
                     double half_width) {
  LobeShape shape;
  shape.peak = pattern.power(frame.s);
  const double step = half_width / 2000;
  shape.narrowest_rad = std::numeric_limits<double>::infinity();
  constexpr int kAngles = 180;
  for (int k = 0; k < kAngles; ++k) {
    const double angle_rad = kPi * k / kAngles;
    // Direction cosines of the two half-power points -> the angle between them.
    const double a = half_power_radius(pattern, frame, angle_rad, shape.peak / 2, step, half_width);
    const double b =
        half_power_radius(pattern, frame, angle_rad + kPi, shape.peak / 2, step, half_width);
    const double width_rad = std::asin(std::min(a, 1.0)) + std::asin(std::min(b, 1.0));
    if (std::isnan(a) || std::isnan(b)) continue;
    if (width_rad > shape.widest_rad) {
      shape.widest_rad = width_rad;
      shape.angle_of_widest_rad = angle_rad;
    }
    shape.narrowest_rad = std::min(shape.narrowest_rad, width_rad);
  }
  if (shape.widest_rad == 0)
    shape.widest_rad = shape.narrowest_rad = std::numeric_limits<double>::quiet_NaN();
  // The main lobe reaches less than 1.3 half-power widths from its middle in every direction (the
  // first null of a uniform line is at 1.13); higher maxima beyond are sidelobes or grating lobes.
  double best = 0;
  const std::int64_t n = grid.n_pixels;
  for (std::int64_t row = 1; row + 1 < n; ++row) {
    for (std::int64_t column = 1; column + 1 < n; ++column) {
      const float value = grid.power[row * n + column];
      bool highest = value > 0;
      for (std::int64_t dy = -1; dy <= 1 && highest; ++dy) {
        for (std::int64_t dx = -1; dx <= 1; ++dx)
          highest = highest && !(grid.power[(row + dy) * n + column + dx] > value);
      }
      if (!highest) continue;
      const double x = -static_cast<double>(column - n / 2) * grid.cell;
      const double y = static_cast<double>(row - n / 2) * grid.cell;
      const double along =
          x * std::sin(shape.angle_of_widest_rad) + y * std::cos(shape.angle_of_widest_rad);
      const double across =
          x * std::cos(shape.angle_of_widest_rad) - y * std::sin(shape.angle_of_widest_rad);
      const double reach = std::hypot(along / shape.widest_rad, across / shape.narrowest_rad);
      if (reach > 0.6) best = std::max(best, static_cast<double>(value));
    }
  }
  shape.sidelobe_db =
      best > 0 ? 10 * std::log10(best / shape.peak) : std::numeric_limits<double>::quiet_NaN();
  return shape;
}

double weight_loss_db(std::span<const cf32> weights, std::span<const cf32> ideal) {
  RYLE_ASSERT(weights.size() == ideal.size());
  // The ideal weights say what a signal from the pointing looks like: conj(W) up to amplitude.
  cf64 sum = 0;
  double power = 0, sum_ideal = 0, power_ideal = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const cf64 w(weights[k]), i(ideal[k]);
    if (i == cf64(0)) continue;
    sum += w * std::conj(i) / std::abs(i);
    power += std::norm(w);
    sum_ideal += std::abs(i);
    power_ideal += std::norm(i);
  }
  return 10 * std::log10((sum_ideal * sum_ideal / power_ideal) / (std::norm(sum) / power));
}

}  // namespace ryle::beamform
