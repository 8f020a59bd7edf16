// SPDX-License-Identifier: BSD-3-Clause
// Outliers among channels: Legendre fit of the bandpass, IQRM.
#include <algorithm>
#include <cmath>

#include "ryle/engine/search/normalize.hpp"
#include "ryle/engine/search/robust.hpp"

namespace ryle::search {
namespace {

/// P_0 .. P_degree at u.
void legendre(double u, int degree, double* p) {
  p[0] = 1;
  if (degree > 0) p[1] = u;
  for (int k = 2; k <= degree; ++k) p[k] = ((2 * k - 1) * u * p[k - 1] - (k - 1) * p[k - 2]) / k;
}

/// Solves the normal equations by Cholesky; they are well conditioned for Legendre polynomials on
/// a mostly filled interval. A direction without data stays 0.
std::vector<double> solve(std::vector<double> a, std::vector<double> b) {
  const auto n = b.size();
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k < j; ++k) a[j * n + j] -= a[j * n + k] * a[j * n + k];
    const double pivot = a[j * n + j] > 1e-9 ? std::sqrt(a[j * n + j]) : 0;
    a[j * n + j] = pivot;
    for (std::size_t i = j + 1; i < n; ++i) {
      for (std::size_t k = 0; k < j; ++k) a[i * n + j] -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = pivot > 0 ? a[i * n + j] / pivot : 0;
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i * n + k] * b[k];
    b[i] = a[i * n + i] > 0 ? b[i] / a[i * n + i] : 0;
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k * n + i] * b[k];
    b[i] = a[i * n + i] > 0 ? b[i] / a[i * n + i] : 0;
  }
  return b;
}

}  // namespace

std::vector<double> detail::legendre_basis(std::size_t n, int degree) {
  const auto terms = static_cast<std::size_t>(degree) + 1;
  std::vector<double> basis(n * terms);
  for (std::size_t c = 0; c < n; ++c)
    legendre(n > 1 ? 2 * static_cast<double>(c) / static_cast<double>(n - 1) - 1 : 0, degree,
             basis.data() + c * terms);
  return basis;
}

std::vector<double> legendre_fit(const std::vector<double>& values,
                                 const std::vector<std::uint8_t>& good, int degree) {
  const std::size_t n = values.size();
  const auto terms = static_cast<std::size_t>(degree) + 1;
  const std::vector<double> basis = detail::legendre_basis(n, degree);
  std::vector<std::uint8_t> use = good;
  std::vector<double> fit(n, 0.0);
  for (int round = 0; round < 5; ++round) {
    std::vector<double> a(terms * terms, 0.0), b(terms, 0.0);
    for (std::size_t c = 0; c < n; ++c) {
      if (!use[c]) continue;
      for (std::size_t i = 0; i < terms; ++i) {
        b[i] += basis[c * terms + i] * values[c];
        for (std::size_t j = 0; j <= i; ++j)
          a[i * terms + j] += basis[c * terms + i] * basis[c * terms + j];
      }
    }
    const auto coefficients = solve(std::move(a), std::move(b));
    std::vector<double> residual;
    for (std::size_t c = 0; c < n; ++c) {
      fit[c] = 0;
      for (std::size_t k = 0; k < terms; ++k) fit[c] += coefficients[k] * basis[c * terms + k];
      if (good[c]) residual.push_back(std::abs(values[c] - fit[c]));
    }
    const double limit = 5 * 1.4826 * detail::median_of(residual);
    for (std::size_t c = 0; c < n; ++c) use[c] = good[c] && std::abs(values[c] - fit[c]) <= limit;
  }
  return fit;
}

std::vector<std::uint8_t> iqrm(const std::vector<double>& values,
                               const std::vector<std::uint8_t>& good, std::int64_t max_lag,
                               double threshold) {
  const auto n = static_cast<std::int64_t>(values.size());
  std::vector<std::pair<std::int64_t, std::int64_t>> votes;  // voter, accused
  std::vector<std::int64_t> received(values.size(), 0);
  std::vector<std::int64_t> lags;
  for (std::int64_t lag = 1; lag <= max_lag; lag = std::max(lag + 1, lag * 3 / 2)) {
    lags.push_back(lag);
    lags.push_back(-lag);
  }
  for (const std::int64_t lag : lags) {
    std::vector<double> differences;
    const auto pair_good = [&](std::int64_t i) {
      return i + lag >= 0 && i + lag < n && good[i] && good[i + lag];
    };
    const auto difference = [&](std::int64_t i) { return values[i] - values[i + lag]; };
    for (std::int64_t i = 0; i < n; ++i)
      if (pair_good(i)) differences.push_back(difference(i));
    if (differences.size() < 8) continue;
    std::sort(differences.begin(), differences.end());
    const std::size_t m = differences.size();
    const double middle = differences[m / 2];
    const double sigma = (differences[3 * m / 4] - differences[m / 4]) / 1.349;
    for (std::int64_t i = 0; i < n; ++i) {
      if (!pair_good(i) || !(difference(i) - middle > threshold * sigma)) continue;
      votes.emplace_back(i + lag, i);
      ++received[i];
    }
  }
  // Only the vote of a neighbour that looks better itself counts.
  std::vector<std::uint8_t> flagged(values.size(), 0);
  for (const auto& [voter, accused] : votes) {
    if (received[voter] < received[accused]) flagged[accused] = 1;
  }
  return flagged;
}

}  // namespace ryle::search
