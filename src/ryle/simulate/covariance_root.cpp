// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/simulate/fengine.hpp"

namespace ryle::simulate {
namespace {

using Matrix = std::vector<cf64>;  // [row][column]

// A A^H = V with A lower triangular; false when V is not positive definite to rounding.
bool cholesky(const Matrix& v, std::int64_t n, Matrix& a) {
  a.assign(v.size(), cf64(0));
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = j; i < n; ++i) {
      cf64 sum = v[i * n + j];
      for (std::int64_t k = 0; k < j; ++k) sum -= a[i * n + k] * std::conj(a[j * n + k]);
      if (i == j) {
        // Rounding of n products of the size of the diagonal.
        if (!(sum.real() > 1e-15 * static_cast<double>(n) * v[j * n + j].real())) return false;
        a[j * n + j] = std::sqrt(sum.real());
      } else {
        a[i * n + j] = sum / a[j * n + j].real();
      }
    }
  }
  return true;
}

// One rotation of the plane (p, q) that makes a[p][q] zero; rows of `vectors` turn along.
// @eq H = P M P^H, P = diag(1, e^{-i phi}), M real with off-diagonal |a_pq|; then Jacobi's angle
void rotate(Matrix& a, Matrix& vectors, std::int64_t n, std::int64_t p, std::int64_t q) {
  const cf64 off = a[p * n + q];
  const double size = std::abs(off);
  if (size == 0) return;
  const double tau = (a[q * n + q].real() - a[p * n + p].real()) / (2 * size);
  const double t = (tau >= 0 ? 1 : -1) / (std::abs(tau) + std::sqrt(1 + tau * tau));
  const double c = 1 / std::sqrt(1 + t * t), s = t * c;
  const cf64 phase = off / size;  // e^{+i phi}
  const double a_pp = a[p * n + p].real() - t * size, a_qq = a[q * n + q].real() + t * size;
  for (std::int64_t k = 0; k < n; ++k) {
    const cf64 row_p = a[p * n + k], row_q = phase * a[q * n + k];
    a[p * n + k] = c * row_p - s * row_q;
    a[q * n + k] = s * row_p + c * row_q;
    const cf64 v_p = vectors[p * n + k], v_q = std::conj(phase) * vectors[q * n + k];
    vectors[p * n + k] = c * v_p - s * v_q;
    vectors[q * n + k] = s * v_p + c * v_q;
  }
  for (std::int64_t k = 0; k < n; ++k) {
    a[k * n + p] = std::conj(a[p * n + k]);
    a[k * n + q] = std::conj(a[q * n + k]);
  }
  a[p * n + p] = a_pp;
  a[q * n + q] = a_qq;
  a[p * n + q] = a[q * n + p] = 0;
}

// Eigenvalues on the diagonal of `a`, eigenvectors in the rows of `vectors`: cyclic Jacobi, n^3 per
// sweep, about ten sweeps.
void eigen(Matrix& a, Matrix& vectors, std::int64_t n) {
  vectors.assign(a.size(), cf64(0));
  for (std::int64_t k = 0; k < n; ++k) vectors[k * n + k] = 1;
  for (int sweep = 0; sweep < 40; ++sweep) {
    double off = 0, diagonal = 0;
    for (std::int64_t p = 0; p < n; ++p) {
      diagonal += std::norm(a[p * n + p]);
      for (std::int64_t q = p + 1; q < n; ++q) off += std::norm(a[p * n + q]);
    }
    if (off <= 1e-28 * diagonal) return;
    for (std::int64_t p = 0; p < n; ++p) {
      for (std::int64_t q = p + 1; q < n; ++q) rotate(a, vectors, n, p, q);
    }
  }
}

// Negative eigenvalues become 0: the nearest matrix without them.
void root_by_eigen(const Matrix& v, std::int64_t n, CovarianceRoot& result) {
  Matrix a = v, vectors;
  eigen(a, vectors, n);
  result.root.assign(v.size(), cf64(0));
  result.largest_eigenvalue = result.most_negative_eigenvalue = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const double value = a[k * n + k].real();
    result.largest_eigenvalue = std::max(result.largest_eigenvalue, value);
    result.most_negative_eigenvalue = std::min(result.most_negative_eigenvalue, value);
    const double root = std::sqrt(std::max(0.0, value));
    for (std::int64_t i = 0; i < n; ++i) result.root[i * n + k] = root * vectors[k * n + i];
  }
  double sum2 = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      cf64 sum = 0;
      for (std::int64_t k = 0; k < n; ++k) {
        sum += result.root[i * n + k] * std::conj(result.root[j * n + k]);
      }
      sum2 += std::norm(sum - v[i * n + j]);
      result.largest_change = std::max(result.largest_change, std::abs(sum - v[i * n + j]));
    }
  }
  result.rms_change = std::sqrt(sum2 / static_cast<double>(n * n));
}

// Largest eigenvalue of a Hermitian matrix by power iteration; when the one of largest size is
// negative, of the matrix shifted by it.
double largest_eigenvalue(const std::vector<cf64>& v, std::int64_t n) {
  double shift = 0, value = 0;
  for (int attempt = 0; attempt < 2; ++attempt) {
    Matrix x(static_cast<std::size_t>(n)), y(x.size());
    // A start that is orthogonal to no eigenvector but by accident.
    for (std::int64_t i = 0; i < n; ++i) x[i] = cf64(1, 0.1 * static_cast<double>(i % 7));
    for (int step = 0; step < 1000; ++step) {
      double norm = 0;
      for (const auto& e : x) norm += std::norm(e);
      if (norm == 0) return 0;
      for (auto& e : x) e /= std::sqrt(norm);
      cf64 quotient = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        cf64 sum = -shift * x[i];
        for (std::int64_t k = 0; k < n; ++k) sum += v[i * n + k] * x[k];
        y[i] = sum;
        quotient += std::conj(x[i]) * sum;
      }
      const double before = value;
      value = quotient.real();
      std::swap(x, y);
      if (step > 10 && std::abs(value - before) <= 1e-9 * std::abs(value)) break;
    }
    if (value >= 0) break;
    shift = value;  // the most negative one becomes 0
  }
  return value + shift;
}

}  // namespace

CovarianceRoot covariance_root(std::span<const cf64> covariance, std::int64_t n) {
  if (n < 1 || static_cast<std::int64_t>(covariance.size()) != n * n) {
    throw ConfigError("a covariance of " + std::to_string(covariance.size()) +
                      " values is no square of " + std::to_string(n) + " antennas");
  }
  Matrix v(covariance.size());
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = i; j < n; ++j) {
      const cf64 value = covariance[i * n + j];
      if (!std::isfinite(value.real()) || !std::isfinite(value.imag())) {
        throw ConfigError("the covariance of antennas " + std::to_string(i) + " and " +
                          std::to_string(j) + " is not finite; make_drawable() replaces such");
      }
      v[i * n + j] = i == j ? cf64(value.real()) : value;
      v[j * n + i] = std::conj(v[i * n + j]);
    }
  }
  CovarianceRoot result;
  result.n = n;
  result.positive_definite = cholesky(v, n, result.root);
  if (result.positive_definite) {
    result.largest_eigenvalue = largest_eigenvalue(v, n);
  } else {
    root_by_eigen(v, n, result);
  }
  return result;
}

double make_drawable(std::span<cf64> visibilities, std::int64_t n, double share) {
  Matrix v(visibilities.begin(), visibilities.end());
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = i; j < n; ++j) {
      cf64 value = visibilities[i * n + j];
      const bool good = std::isfinite(value.real()) && std::isfinite(value.imag());
      if (i == j || !good) value = 0;
      v[i * n + j] = value;
      v[j * n + i] = std::conj(value);
    }
  }
  const double largest = largest_eigenvalue(v, n);
  if (!(largest > 0)) throw ConfigError("the covariance has no correlation to draw from");
  const double factor = share * static_cast<double>(n) / largest;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      visibilities[i * n + j] = i == j ? cf64(1) : factor * v[i * n + j];
    }
  }
  return factor;
}

}  // namespace ryle::simulate
