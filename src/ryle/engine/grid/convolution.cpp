// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/convolution.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ryle/core/error.hpp"

namespace ryle::grid {
namespace {

constexpr double kPi = std::numbers::pi;

void require(bool good, const std::string& what) {
  if (!good) throw ConfigError("convolution function: " + what);
}

bool positive(double x) { return std::isfinite(x) && x > 0; }

// Slope at row i in theta^2, of the polynomial through it and its two neighbours on either side.
double row_slope(const Convolution& f, std::ptrdiff_t i) {
  const auto n = static_cast<std::ptrdiff_t>(f.table_theta_rad.size());
  const auto taken = std::min<std::ptrdiff_t>(5, n);
  const auto first = std::clamp<std::ptrdiff_t>(i - taken / 2, 0, n - taken);
  const auto x = [&](std::ptrdiff_t k) {
    const double t = f.table_theta_rad[k];
    return t * t;
  };
  double slope = 0;
  for (std::ptrdiff_t j = first; j < first + taken; ++j) {
    double term = j == i ? 0 : 1 / (x(j) - x(i));  // of Lagrange's polynomial j, at row i
    for (std::ptrdiff_t k = first; k < first + taken; ++k) {
      if (k == i || k == j) continue;
      if (j == i)
        term += 1 / (x(i) - x(k));
      else
        term *= (x(i) - x(k)) / (x(j) - x(k));
    }
    slope += term * f.table_value[j];
  }
  return slope;
}

// Cubics in theta^2, even in theta and so smooth through 0.
double interpolate(const Convolution& f, double theta) {
  const auto& t = f.table_theta_rad;
  if (theta >= t.back()) return 0;
  const std::ptrdiff_t k =
      std::max<std::ptrdiff_t>(0, std::upper_bound(t.begin(), t.end(), theta) - t.begin() - 1);
  const auto i = static_cast<std::size_t>(k);
  const double width = t[i + 1] * t[i + 1] - t[i] * t[i];
  const double s = (theta * theta - t[i] * t[i]) / width;
  const double y0 = f.table_value[i], y1 = f.table_value[i + 1];
  const double m0 = row_slope(f, k) * width, m1 = row_slope(f, k + 1) * width;
  return y0 + s * (m0 + s * (3 * (y1 - y0) - 2 * m0 - m1 + s * (2 * (y0 - y1) + m0 + m1)));
}

double tapered(double core, double theta, double b) {
  return core * std::exp(-(theta / b) * (theta / b));
}

}  // namespace

void check(const Convolution& f) {
  require(positive(f.support_rad) && f.support_rad < kPi,
          "the support radius must be above 0 and below 180 deg");
  switch (f.function) {
    case Function::gauss:
      require(positive(f.sigma_rad), "sigma must be above 0");
      break;
    case Function::ellipse:
      require(positive(f.minor_rad) && positive(f.major_rad) && f.minor_rad <= f.major_rad,
              "major and minor must be above 0, major the longer one");
      break;
    case Function::jinc:
    case Function::sinc:
      require(positive(f.a_rad) && positive(f.b_rad), "a and b must be above 0");
      break;
    case Function::table: {
      const auto& t = f.table_theta_rad;
      require(t.size() >= 2 && t.size() == f.table_value.size() && t.front() == 0 &&
                  std::adjacent_find(t.begin(), t.end(), std::greater_equal<>()) == t.end(),
              "a table needs two rows or more whose angles ascend from 0");
      break;
    }
    case Function::mean:
      break;
  }
}

double value(const Convolution& f, double theta, double xi, double eta) {
  switch (f.function) {
    case Function::gauss:
      return std::exp(-0.5 * (theta / f.sigma_rad) * (theta / f.sigma_rad));
    case Function::ellipse: {
      const double c = std::cos(f.position_angle_rad), s = std::sin(f.position_angle_rad);
      const double along = (eta * c + xi * s) / f.major_rad;  // position angle: north through east
      const double across = (xi * c - eta * s) / f.minor_rad;
      return std::exp(-0.5 * (along * along + across * across));
    }
    case Function::jinc: {
      const double x = kPi * theta / f.a_rad;
      return tapered(x < 1e-9 ? 1.0 : 2 * std::cyl_bessel_j(1.0, x) / x, theta, f.b_rad);
    }
    case Function::sinc: {
      const double x = kPi * theta / f.a_rad;
      return tapered(x < 1e-9 ? 1.0 : std::sin(x) / x, theta, f.b_rad);
    }
    case Function::table:
      return interpolate(f, theta);
    case Function::mean:
      return 1;
  }
  return 0;
}

bool is_radial(const Convolution& f) { return f.function != Function::ellipse; }

bool has_negative_lobes(const Convolution& f) {
  if (f.function == Function::jinc)
    return f.support_rad > 1.2196698912665045 * f.a_rad;  // J1's first zero / pi
  if (f.function == Function::sinc) return f.support_rad > f.a_rad;
  return f.function == Function::table &&
         *std::min_element(f.table_value.begin(), f.table_value.end()) < 0;
}

Convolution times_beam(const Convolution& convolution, double beam_fwhm_rad) {
  require(positive(beam_fwhm_rad), "the beam's width must be above 0");
  Convolution f = convolution;
  const double sigma = beam_fwhm_rad / std::sqrt(8 * std::log(2.0));
  const auto narrower = [&](double width) { return width * sigma / std::hypot(width, sigma); };
  switch (f.function) {
    case Function::mean:
      f.function = Function::gauss;
      f.sigma_rad = sigma;
      break;
    case Function::gauss:
      f.sigma_rad = narrower(f.sigma_rad);
      break;
    case Function::ellipse:
      f.minor_rad = narrower(f.minor_rad);
      f.major_rad = narrower(f.major_rad);
      break;
    case Function::jinc:
    case Function::sinc:  // exp(-(theta/b)^2): sigma = b / sqrt 2
      f.b_rad = std::sqrt(2.0) * narrower(f.b_rad / std::sqrt(2.0));
      break;
    case Function::table:
      for (std::size_t k = 0; k < f.table_value.size(); ++k)
        f.table_value[k] *= std::exp(-0.5 * std::pow(f.table_theta_rad[k] / sigma, 2));
      break;
  }
  return f;
}

double fwhm_rad(const Convolution& f) {
  if (f.function == Function::gauss) return f.sigma_rad * std::sqrt(8 * std::log(2.0));
  if (f.function == Function::ellipse) return f.major_rad * std::sqrt(8 * std::log(2.0));
  if (f.function == Function::mean) return 2 * f.support_rad;
  double low = 0, high = f.support_rad;
  if (value(f, high, high, 0) > 0.5) return 2 * high;
  // The first crossing: walk out until it is passed, then halve.
  for (int k = 1; k <= 1000; ++k) {
    high = f.support_rad * k / 1000;
    if (value(f, high, high, 0) <= 0.5) break;
    low = high;
  }
  for (int k = 0; k < 60; ++k) {
    const double middle = 0.5 * (low + high);
    (value(f, middle, middle, 0) > 0.5 ? low : high) = middle;
  }
  return low + high;
}

}  // namespace ryle::grid
