// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/math/window.hpp"

#include <cmath>
#include <numbers>

namespace ryle::math {

using std::numbers::pi;

double sinc(double x) { return x == 0 ? 1.0 : std::sin(pi * x) / (pi * x); }

double bessel_i0(double x) {
  // sum ((x/2)^k / k!)^2: all terms positive, so no cancellation.
  double term = 1;
  double sum = 1;
  for (int k = 1; term > sum * 1e-17; ++k) {
    const double factor = x / (2.0 * k);
    term *= factor * factor;
    sum += term;
  }
  return sum;
}

double window(WindowShape shape, double x, double kaiser_beta) {
  if (x < 0 || x > 1) return 0;
  switch (shape) {
    case WindowShape::hann:
      return 0.5 - 0.5 * std::cos(2 * pi * x);
    case WindowShape::hamming:
      return 0.54 - 0.46 * std::cos(2 * pi * x);
    case WindowShape::blackman:
      return 0.42 - 0.5 * std::cos(2 * pi * x) + 0.08 * std::cos(4 * pi * x);
    case WindowShape::kaiser:
      return bessel_i0(kaiser_beta * std::sqrt(1 - (2 * x - 1) * (2 * x - 1))) /
             bessel_i0(kaiser_beta);
    default:
      return 1;
  }
}

std::vector<double> prototype_filter(WindowShape shape, double kaiser_beta, std::int64_t n_points,
                                     std::int64_t n_taps) {
  const std::int64_t length = n_points * n_taps;
  const auto k = static_cast<double>(n_points);
  const auto l = static_cast<double>(length);
  std::vector<double> h(length, 1 / std::sqrt(k));
  if (n_taps == 1) return h;
  double energy = 0;
  for (std::int64_t n = 0; n < length; ++n) {
    const auto x = static_cast<double>(n);
    h[n] = window(shape, (x + 0.5) / l, kaiser_beta) * sinc((x - (l - 1) / 2) / k);
    energy += h[n] * h[n];
  }
  const double scale = 1 / std::sqrt(energy);
  for (auto& value : h) value *= scale;
  return h;
}

double filter_response(const std::vector<double>& filter, std::int64_t n_points, double offset) {
  double re = 0;
  double im = 0;
  double sum = 0;
  for (std::size_t n = 0; n < filter.size(); ++n) {
    const double turns = offset * static_cast<double>(n) / static_cast<double>(n_points);
    const double angle_rad = 2 * pi * (turns - std::floor(turns));
    re += filter[n] * std::cos(angle_rad);
    im -= filter[n] * std::sin(angle_rad);
    sum += filter[n];
  }
  return std::hypot(re, im) / std::abs(sum);
}

}  // namespace ryle::math
