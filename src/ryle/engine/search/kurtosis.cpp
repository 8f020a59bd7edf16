// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/kurtosis.hpp"

#include <array>
#include <cmath>
#include <vector>

#include "ryle/core/error.hpp"

namespace ryle::search {
namespace {

using Real = long double;

/// Raw moments 0 .. 4 of the sum of M independent numbers with raw moments m (m[0] = 1), through
/// cumulants, which add.
std::array<Real, 5> moments_of_sum(const std::array<Real, 5>& m, Real count) {
  const Real k1 = count * m[1];
  const Real k2 = count * (m[2] - m[1] * m[1]);
  const Real k3 = count * (m[3] - 3 * m[1] * m[2] + 2 * m[1] * m[1] * m[1]);
  const Real k4 = count * (m[4] - 4 * m[1] * m[3] - 3 * m[2] * m[2] + 12 * m[1] * m[1] * m[2] -
                           6 * m[1] * m[1] * m[1] * m[1]);
  return {1, k1, k2 + k1 * k1, k3 + 3 * k2 * k1 + k1 * k1 * k1,
          k4 + 4 * k3 * k1 + 3 * k2 * k2 + 6 * k2 * k1 * k1 + k1 * k1 * k1 * k1};
}

/// a (a + 1) ... (a + n - 1)
Real rising(Real a, int n) {
  Real product = 1;
  for (int k = 0; k < n; ++k) product *= a + static_cast<Real>(k);
  return product;
}

struct Shape {
  Real mean, sigma, skewness, kurtosis;  // kurtosis 3 for a Gaussian
};

/// Powers x_i are gamma variables of shape d. S2/S1^2 does not depend on S1 (the x_i/S1 are a
/// Dirichlet vector), so E[(S2/S1^2)^k] = E[S2^k] / E[S1^2k], exactly.
Shape shape_of(std::int64_t n_samples, Real d) {
  const auto m = static_cast<Real>(n_samples);
  const auto squares =
      moments_of_sum({1, rising(d, 2), rising(d, 4), rising(d, 6), rising(d, 8)}, m);  // of x^2
  std::array<Real, 5> r{};  // of SK = g (M S2/S1^2 - 1), taken about 1
  const Real gain = (m * d + 1) / (m - 1);
  std::array<Real, 5> ratio{};
  for (int k = 0; k <= 4; ++k) {
    const auto i = static_cast<std::size_t>(k);
    ratio[i] = squares[i] / rising(m * d, 2 * k) * std::pow(gain * m, static_cast<Real>(k));
  }
  const Real shift = -gain - 1;  // SK - 1 = ratio + shift
  constexpr std::array<std::array<int, 5>, 5> kBinomial{
      {{1, 0, 0, 0, 0}, {1, 1, 0, 0, 0}, {1, 2, 1, 0, 0}, {1, 3, 3, 1, 0}, {1, 4, 6, 4, 1}}};
  for (std::size_t k = 0; k <= 4; ++k)
    for (std::size_t j = 0; j <= k; ++j)
      r[k] +=
          static_cast<Real>(kBinomial[k][j]) * ratio[j] * std::pow(shift, static_cast<Real>(k - j));
  const Real mean = r[1], variance = r[2] - mean * mean;
  const Real third = r[3] - 3 * mean * r[2] + 2 * mean * mean * mean;
  const Real fourth =
      r[4] - 4 * mean * r[3] + 6 * mean * mean * r[2] - 3 * mean * mean * mean * mean;
  return {1 + mean, std::sqrt(variance), third / std::pow(variance, 1.5L),
          fourth / (variance * variance)};
}

/// Logarithm of the Pearson density on a grid, from its differential equation
/// @eq p'/p = -(a + x)/(c0 + a x + c2 x^2) in units of sigma about the mean
class PearsonSlope {
 public:
  explicit PearsonSlope(const Shape& s) {
    const Real b1 = s.skewness * s.skewness;
    const Real divisor = 10 * s.kurtosis - 12 * b1 - 18;
    c0_ = (4 * s.kurtosis - 3 * b1) / divisor;
    a_ = s.skewness * (s.kurtosis + 3) / divisor;
    c2_ = (2 * s.kurtosis - 3 * b1 - 6) / divisor;
  }
  Real mode() const { return -a_; }
  /// 0 or less: beyond the end of the distribution.
  Real quadratic(Real x) const { return c0_ + a_ * x + c2_ * x * x; }
  Real operator()(Real x) const { return -(a_ + x) / quadratic(x); }

 private:
  Real c0_, a_, c2_;
};

/// Density from the mode outward on one side, in steps of h; ends where nothing is left.
std::vector<Real> walk(const PearsonSlope& slope, Real h) {
  std::vector<Real> density{1};
  Real x = slope.mode(), log_p = 0;
  for (int k = 0; k < 400000; ++k) {
    if (!(slope.quadratic(x + h) > 1e-12L)) break;
    log_p += h / 6 * (slope(x) + 4 * slope(x + h / 2) + slope(x + h));  // Simpson
    if (log_p < -60) break;
    density.push_back(std::exp(log_p));
    x += h;
  }
  return density;
}

/// Distance from the mode beyond which `part` of the area (steps of h, trapezoids) lies.
Real tail_start(const std::vector<Real>& density, Real h, Real part) {
  Real area = 0;
  for (std::size_t k = density.size() - 1; k > 0; --k) {
    const Real slice = 0.5L * h * (density[k] + density[k - 1]);
    if (area + slice >= part) return h * (static_cast<Real>(k) - (part - area) / slice);
    area += slice;
  }
  return 0;
}

Real area_of(const std::vector<Real>& density, Real h) {
  Real sum = 0;
  for (const Real p : density) sum += p;
  return h * (sum - 0.5L * (density.front() + density.back()));
}

}  // namespace

double spectral_kurtosis(double mean, double rms, std::int64_t n_samples, double degrees) {
  const auto m = static_cast<double>(n_samples);
  return (m * degrees + 1) / (m - 1) * rms * rms / (mean * mean);
}

KurtosisLimits kurtosis_limits(std::int64_t n_samples, double degrees, double probability) {
  if (n_samples < 8 || !(degrees >= 0.5))
    throw ConfigError("spectral kurtosis: " + std::to_string(n_samples) + " samples of " +
                      std::to_string(degrees) + " degrees; at least 8 samples of 0.5");
  const Shape shape = shape_of(n_samples, static_cast<Real>(degrees));
  const PearsonSlope slope(shape);
  constexpr Real kStep = 1e-3L;
  const auto below = walk(slope, -kStep), above = walk(slope, kStep);
  const Real total = area_of(below, kStep) + area_of(above, kStep);
  const Real part = static_cast<Real>(probability) * total;
  const Real low = slope.mode() - tail_start(below, kStep, part);
  const Real high = slope.mode() + tail_start(above, kStep, part);
  return {static_cast<double>(shape.mean + shape.sigma * low),
          static_cast<double>(shape.mean + shape.sigma * high)};
}

}  // namespace ryle::search
