// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/calibrate/error_bound.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "ryle/core/error.hpp"

namespace ryle::calibrate {
namespace {

double conjugate(double v) { return v; }
cf64 conjugate(cf64 v) { return std::conj(v); }
double real_part(double v) { return v; }
double real_part(cf64 v) { return v.real(); }

/// Square matrix, row by row.
template <class T>
struct Square {
  explicit Square(std::int64_t size) : n(size), values(size * size) {}
  T& operator()(std::int64_t row, std::int64_t column) { return values[row * n + column]; }
  const T& operator()(std::int64_t row, std::int64_t column) const {
    return values[row * n + column];
  }
  T* row(std::int64_t r) { return values.data() + r * n; }
  std::int64_t n;
  std::vector<T> values;
};

/// Inverse of a Hermitian positive definite matrix, in place: A = L L^H, A^-1 = L^-H L^-1. Loops
/// run along rows. Throws ConfigError where it is not positive.
template <class T>
void invert_positive(Square<T>& a) {
  const std::int64_t n = a.n;
  // Row by row of L^H = U, A = U^H U, over the upper triangle.
  for (std::int64_t k = 0; k < n; ++k) {
    const double pivot = real_part(a(k, k));
    if (!(pivot > 0))
      throw ConfigError("the errors of gains have no bound: nothing connects some of the inputs");
    const double scale = 1 / std::sqrt(pivot);
    T* of_k = a.row(k);
    for (std::int64_t j = k; j < n; ++j) of_k[j] *= scale;
    for (std::int64_t i = k + 1; i < n; ++i) {
      const T factor = conjugate(of_k[i]);
      T* of_i = a.row(i);
      for (std::int64_t j = i; j < n; ++j) of_i[j] -= factor * of_k[j];
    }
  }
  // W = U^-1, upper: from the last row, W_k = (e_k - sum_{i>k} U_ki W_i) / U_kk.
  Square<T> w(n);
  for (std::int64_t k = n; k-- > 0;) {
    T* out = w.row(k);
    for (std::int64_t i = k + 1; i < n; ++i) {
      const T factor = a(k, i);
      const T* of_i = w.row(i);
      for (std::int64_t j = i; j < n; ++j) out[j] -= factor * of_i[j];
    }
    out[k] += T(1);
    const double scale = 1 / real_part(a(k, k));
    for (std::int64_t j = k; j < n; ++j) out[j] *= scale;
  }
  // A^-1 = W W^H.
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = i; j < n; ++j) {
      T sum{};
      for (std::int64_t k = j; k < n; ++k) sum += w(i, k) * conjugate(w(j, k));
      a(i, j) = sum;
      a(j, i) = conjugate(sum);
    }
  }
}

/// R^-1 and C.
struct Correlations {
  explicit Correlations(const BoundInput& input) : b(input.n_inputs), c(input.n_inputs) {
    for (std::int64_t i = 0; i < b.n; ++i) {
      for (std::int64_t j = 0; j < b.n; ++j) b(i, j) = r(input, i, j);
    }
    invert_positive(b);
    for (std::int64_t i = 0; i < b.n; ++i)
      for (std::int64_t j = 0; j < b.n; ++j) c(i, j) = r(input, i, j) * b(j, i);
  }
  static cf64 r(const BoundInput& input, std::int64_t i, std::int64_t j) {
    return input.signal[i * input.n_inputs + j] + (i == j ? input.noise[i] : 0.0);
  }
  Square<cf64> b, c;
};

/// Of amplitudes, once the noise powers are fitted with them.
Square<double> amplitude_information(const BoundInput& input, const Correlations& m) {
  const std::int64_t n = input.n_inputs;
  Square<double> noise(n);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      noise(i, j) = input.noise[i] * input.noise[j] * std::norm(m.b(i, j));
  invert_positive(noise);
  Square<double> f(n);
  for (std::int64_t i = 0; i < n; ++i) {
    const double di = input.noise[i] * m.b(i, i).real();
    for (std::int64_t j = 0; j < n; ++j) {
      const double dj = input.noise[j] * m.b(j, j).real();
      f(i, j) = 2 * m.c(i, j).real() + (i == j ? 2.0 : 0.0) - 4 * di * dj * noise(i, j);
    }
  }
  return f;
}

/// A common phase is open: this makes the matrix regular, and adds nothing to differences.
double gauge_term(const Correlations& m) {
  double trace = 0;
  for (std::int64_t i = 0; i < m.c.n; ++i) trace += 2 * m.c(i, i).real() - 2;
  return trace / static_cast<double>(m.c.n * m.c.n);
}

double phase_information(const Correlations& m, std::int64_t i, std::int64_t j) {
  return 2 * m.c(i, j).real() - (i == j ? 2.0 : 0.0);
}

}  // namespace

ErrorBound error_bound(const BoundInput& input) {
  const std::int64_t n = input.n_inputs;
  for (const double p : input.noise)
    if (!(p > 0) || !std::isfinite(p))
      throw ConfigError("the noise power of an input must be above 0, got " + std::to_string(p));
  const Correlations m(input);
  const Square<double> amplitudes = amplitude_information(input, m);
  const double open = gauge_term(m);
  // What the gauge term leaves in the inverse, on every element.
  const double remainder = 1 / (open * static_cast<double>(n * n));
  ErrorBound bound;
  bound.phase_rad.resize(n);
  bound.amplitude.resize(n);
  const auto sigma = [&](double variance) {
    return std::sqrt(std::max(0.0, variance) / input.n_samples);
  };
  const bool coupled = n <= kMaxCoupledInputs;
  const std::int64_t size = coupled ? 2 * n : n;
  Square<double> f(size);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      f(i, j) = phase_information(m, i, j) + open;
      if (!coupled) continue;
      f(n + i, n + j) = amplitudes(i, j);
      f(i, n + j) = -2 * m.c(i, j).imag();
      f(n + j, i) = f(i, n + j);
    }
  }
  invert_positive(f);
  for (std::int64_t a = 0; a < n; ++a) bound.phase_rad[a] = sigma(f(a, a) - remainder);
  if (coupled) {
    for (std::int64_t a = 0; a < n; ++a) bound.amplitude[a] = sigma(f(n + a, n + a));
    return bound;
  }
  Square<double> g = amplitudes;
  invert_positive(g);
  for (std::int64_t a = 0; a < n; ++a) bound.amplitude[a] = sigma(g(a, a));
  return bound;
}

namespace {

/// Largest eigenvalue of T over the mean of Q, by power iteration.
double largest_eigenvalue(const Equations& e, std::int64_t s, double mean_power) {
  constexpr int kIterations = 60;
  const std::int64_t n = e.n_inputs();
  double squares = 0;
  for (std::int64_t a = 0; a < n; ++a)
    for (std::int64_t b = 0; b < n; ++b) squares += std::norm(e.target(s, a, b)) / mean_power;
  // Added to all eigenvalues, so that the largest one is the largest in modulus, too.
  const double shift = 0.5 * std::sqrt(squares / mean_power / static_cast<double>(n));
  std::vector<cf64> v(n), next(n);
  for (std::int64_t a = 0; a < n; ++a)  // any start that is not orthogonal to it
    v[a] = std::polar(1.0, 2.4 * static_cast<double>(a * a));
  double lambda = 0;
  for (int k = 0; k < kIterations; ++k) {
    double norm = 0, product = 0, length = 0;
    for (std::int64_t a = 0; a < n; ++a) {
      next[a] = shift * v[a];
      for (std::int64_t b = 0; b < n; ++b) next[a] += e.target(s, a, b) / mean_power * v[b];
      norm += std::norm(next[a]);
      product += (std::conj(v[a]) * next[a]).real();
      length += std::norm(v[a]);
    }
    if (!(norm > 0)) return 0;
    lambda = product / length - shift;
    for (std::int64_t a = 0; a < n; ++a) v[a] = next[a] / std::sqrt(norm);
  }
  return lambda;
}

}  // namespace

namespace {

/// Largest eigenvalue of Q over its mean: what T has for a flux of 1, whatever the phases.
double model_eigenvalue(const Equations& e, std::int64_t s, double mean_power) {
  constexpr int kIterations = 30;
  const std::int64_t n = e.n_inputs();
  std::vector<double> v(n, 1), next(n);
  double lambda = 0;
  for (int k = 0; k < kIterations; ++k) {
    double norm = 0, product = 0, length = 0;
    for (std::int64_t a = 0; a < n; ++a) {
      next[a] = v[a];  // added to all eigenvalues
      for (std::int64_t b = 0; b < n; ++b) next[a] += e.power(s, a, b) / mean_power * v[b];
      norm += next[a] * next[a];
      product += v[a] * next[a];
      length += v[a] * v[a];
    }
    lambda = product / length - 1;
    for (std::int64_t a = 0; a < n; ++a) v[a] = next[a] / std::sqrt(norm);
  }
  return lambda;
}

/// Sums over the values of a solution; pairs stand in both orders.
struct Totals {
  Totals(const Equations& e, std::int64_t s) {
    for (std::int64_t a = 0; a < e.n_inputs(); ++a) {
      for (std::int64_t b = 0; b < e.n_inputs(); ++b) {
        target += e.target(s, a, b).real();
        power += e.power(s, a, b);
        n_pairs += e.power(s, a, b) > 0 ? 1 : 0;
      }
      data += e.data_power(s, a);
      weight += e.weight(s, a);
      n_values += static_cast<double>(e.n_values(s, a));
      n_inputs += e.n_values(s, a) > 0 ? 1 : 0;
    }
  }
  /// Mean of w |V - flux M|^2: the square of the system power where w is the number of samples.
  double noise(double flux) const { return std::max(0.0, data - flux * flux * power) / n_values; }

  double target = 0, power = 0, data = 0, weight = 0;
  double n_values = 0, n_pairs = 0, n_inputs = 0;
};

}  // namespace

Strength model_strength(const Equations& e, std::int64_t s, double n_samples) {
  constexpr double kClear_sigma = 4;
  constexpr double kClearEigenvalue = 1.15;  // above the edge of noise
  const Totals all(e, s);
  Strength result;
  if (!(all.power > 0) || !(all.data > 0)) return result;
  const double coherent = std::max(0.0, all.target / all.power);
  const double coherent_sigma = std::sqrt(all.noise(coherent) / all.power);
  // The matrix F u conj(u) |M|^2 and noise, in units of the rms of the model.
  const double model_rms = std::sqrt(all.power / all.weight);
  const double mean_power = all.power / all.n_pairs;
  const double lambda = largest_eigenvalue(e, s, mean_power) * model_rms;
  const double size = model_eigenvalue(e, s, mean_power);
  const double gamma = n_samples > 0 ? all.n_inputs / n_samples : 0;
  const double independent =
      n_samples > 0 ? gamma : all.n_pairs / all.n_inputs * all.n_pairs / all.weight;
  const double edge = gamma + 2 * std::sqrt(independent);
  // System power: first as if all of the eigenvalue were the model.
  double power = std::sqrt(all.noise(lambda / size / model_rms)), spectral = 0;
  for (int step = 0; step < 2; ++step) {
    const double above = lambda / power - gamma;
    const double inner = above * above - 4 * independent;
    spectral = power > 0 && inner > 0 && above > 0
                   ? 0.5 * (above + std::sqrt(inner)) * power / size / model_rms
                   : (power > 0 ? 0 : lambda / size / model_rms);
    if (step == 0) power = std::sqrt(all.noise(spectral));
  }
  const bool in_sum = coherent > kClear_sigma * coherent_sigma;
  const bool in_spectrum = lambda > kClearEigenvalue * edge * power;
  result.detected = in_sum || in_spectrum;
  result.limit =
      std::min(kClear_sigma * coherent_sigma, kClearEigenvalue * edge * power / size / model_rms);
  result.flux = std::max(in_sum ? coherent : 0.0, in_spectrum ? spectral : 0.0);
  // The difference of two large numbers where the model is all there is.
  result.noise = std::max(all.noise(result.flux), 1e-6 * all.noise(0));
  return result;
}

}  // namespace ryle::calibrate
