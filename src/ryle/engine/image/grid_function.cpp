// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/grid_function.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "ryle/core/units.hpp"

namespace ryle::image::detail {
namespace {

constexpr double kMinOversampling = 1.5;
constexpr double kMaxOversampling = 3;

/// Coefficients of the Chebyshev series of a function on [-1, 1] through n nodes.
template <class Function>
std::vector<double> chebyshev_series(std::int64_t n, const Function& function) {
  const auto count = static_cast<double>(n);
  std::vector<double> values(n);
  for (std::int64_t j = 0; j < n; ++j)
    values[j] = function(std::cos(kPi * (static_cast<double>(j) + 0.5) / count));
  std::vector<double> series(n);
  for (std::int64_t d = 0; d < n; ++d) {
    double sum = 0;
    for (std::int64_t j = 0; j < n; ++j)
      sum += values[j] *
             std::cos(kPi * static_cast<double>(d) * (static_cast<double>(j) + 0.5) / count);
    series[d] = (d == 0 ? 1 : 2) * sum / count;
  }
  return series;
}

/// Powers of x, lowest first, of a Chebyshev series.
std::vector<double> powers_of(const std::vector<double>& series) {
  const std::size_t n = series.size();
  std::vector<double> powers(n, 0.0), before(n, 0.0), now(n, 0.0);
  before[0] = 1;  // T_0
  if (n > 1) now[1] = 1;
  for (std::size_t d = 0; d < n; ++d) {
    const auto& t = d == 0 ? before : now;
    for (std::size_t k = 0; k < n; ++k) powers[k] += series[d] * t[k];
    if (d == 0) continue;
    std::vector<double> next(n, 0.0);
    for (std::size_t k = 0; k < n; ++k) next[k] = (k > 0 ? 2 * now[k - 1] : 0.0) - before[k];
    before = std::move(now);
    now = std::move(next);
  }
  return powers;
}

/// The function with the best beta for an oversampling, and its error.
struct Candidate {
  GridFunction function;
  double error = 1;
};
Candidate best_beta(std::int64_t support, double oversampling) {
  Candidate best;
  // Beta of a function whose main lobe ends where the first alias of the edge begins, and less.
  const auto w = static_cast<double>(support);
  const double limit = kPi * w * (1 - 1 / (2 * oversampling));
  for (const double share : {0.89, 0.91, 0.93, 0.95, 0.97, 0.985}) {
    const GridFunction function{support, share * limit, oversampling};
    const double error = aliasing(function, oversampling);
    if (error < best.error) best = {function, error};
  }
  return best;
}

}  // namespace

double GridFunction::operator()(double cells) const {
  const double x = 2 * cells / static_cast<double>(support);
  return x * x < 1 ? std::exp(beta * (std::sqrt(1 - x * x) - 1)) : 0;
}

GridTransform::GridTransform(const GridFunction& function) {
  // Midpoints of half of it: the integrand is even, and all but vanishes at the end.
  const std::int64_t n = 64 + 8 * function.support;
  const auto w = static_cast<double>(function.support);
  for (std::int64_t k = 0; k < n; ++k) {
    cells_.push_back(0.5 * w * (static_cast<double>(k) + 0.5) / static_cast<double>(n));
    weights_.push_back(function(cells_.back()) * w / static_cast<double>(n));
  }
}

double GridTransform::operator()(double turns_per_cell) const {
  double sum = 0;
  for (std::size_t k = 0; k < cells_.size(); ++k)
    sum += weights_[k] * std::cos(2 * kPi * cells_[k] * turns_per_cell);
  return sum;
}

double aliasing(const GridFunction& function, double oversampling) {
  const GridTransform transform(function);
  const double edge = 0.5 / oversampling;
  double sum = 0;
  for (const double k : {1.0, 2.0, 3.0})
    sum += std::abs(transform(k - edge)) + std::abs(transform(k + edge));
  return sum / std::abs(transform(edge));
}

std::optional<GridFunction> grid_function(std::int64_t support, double error) {
  double low = kMinOversampling, high = kMaxOversampling;
  Candidate best = best_beta(support, high);
  if (best.error > error) return std::nullopt;
  for (int step = 0; step < 7; ++step) {
    const double middle = step == 0 ? low : (low + high) / 2;
    const Candidate candidate = best_beta(support, middle);
    if (candidate.error > error) {
      low = middle;
      continue;
    }
    high = middle;
    best = candidate;
    if (step == 0) break;
  }
  return best.function;
}

template <class Real>
GridPolynomials<Real> grid_polynomials(const GridFunction& function, double error) {
  constexpr std::int64_t kMaxDegree = 20, kChecks = 33;
  GridPolynomials<Real> result;
  result.support = function.support;
  result.lanes = function.support <= 8 ? 8 : 16;
  const double half = 0.5 * static_cast<double>(function.support);
  const auto at = [&](std::int64_t tap, double s) {
    // Inside the support: what rounding puts beyond its end counts as the end.
    return function(std::clamp(static_cast<double>(tap) + (s + 1) / 2 - half, -half, half));
  };
  for (result.degree = 4;; ++result.degree) {
    const std::int64_t n = result.degree + 1;
    result.coefficients.assign(n * result.lanes, 0);
    double worst = 0;
    for (std::int64_t tap = 0; tap < function.support; ++tap) {
      const auto powers = powers_of(chebyshev_series(n, [&](double s) { return at(tap, s); }));
      for (std::int64_t d = 0; d < n; ++d)
        result.coefficients[(result.degree - d) * result.lanes + tap] =
            static_cast<Real>(powers[d]);
      for (std::int64_t k = 1; k + 1 < kChecks; ++k) {
        const double s = 2 * static_cast<double>(k) / (kChecks - 1) - 1;
        double value = 0;
        for (std::int64_t d = result.degree; d >= 0; --d) value = value * s + powers[d];
        worst = std::max(worst, std::abs(value - at(tap, s)));
      }
    }
    if (worst < error || result.degree == kMaxDegree) return result;
  }
}
template GridPolynomials<float> grid_polynomials<float>(const GridFunction&, double);
template GridPolynomials<double> grid_polynomials<double>(const GridFunction&, double);

InverseTransform::InverseTransform(const GridFunction& function)
    : limit_(0.5 / function.oversampling) {
  const GridTransform transform(function);
  // Even in f: a series in f^2, from -1 to 1.
  series_ = chebyshev_series(
      28, [&](double x) { return 1 / transform(limit_ * std::sqrt(std::max(0.0, (x + 1) / 2))); });
}

double InverseTransform::operator()(double turns_per_cell) const {
  const double f = turns_per_cell / limit_;
  const double x = 2 * f * f - 1;
  double one = 0, two = 0;  // Clenshaw
  for (std::size_t k = series_.size() - 1; k > 0; --k) {
    const double next = 2 * x * one - two + series_[k];
    two = one;
    one = next;
  }
  return x * one - two + series_[0];
}

}  // namespace ryle::image::detail
