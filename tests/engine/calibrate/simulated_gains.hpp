// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cmath>
#include <numbers>
#include <vector>

#include "ryle/core/random.hpp"
#include "ryle/engine/calibrate/calibrate.hpp"
#include "ryle/engine/calibrate/error_bound.hpp"

namespace ryle::calibrate::test {

inline cf64 normal(std::uint64_t key) {
  return cf64(gaussian(2 * key), gaussian(2 * key + 1)) / std::sqrt(2.0);
}

/// An array over a sky of points: steering vectors, gains with phases anywhere in the circle.
struct SimulatedArray {
  std::int64_t n;
  std::vector<double> fluxes;
  std::vector<std::vector<cf64>> waves;  // [source][input]
  std::vector<cf64> gains;

  SimulatedArray(std::int64_t n_inputs, std::vector<double> source_fluxes, std::uint64_t seed)
      : n(n_inputs), fluxes(std::move(source_fluxes)) {
    for (std::size_t k = 0; k < fluxes.size(); ++k) {
      std::vector<cf64> wave;
      for (std::int64_t a = 0; a < n; ++a)  // positions at random: phases of a source are, too
        wave.push_back(std::polar(1.0, 2 * std::numbers::pi * uniform(combine(seed, k + 7, a))));
      waves.push_back(std::move(wave));
    }
    for (std::int64_t a = 0; a < n; ++a)
      gains.push_back(std::polar(0.7 + 0.6 * uniform(combine(seed, 3, a)),
                                 2 * std::numbers::pi * uniform(combine(seed, 4, a))));
  }
  cf64 model(std::int64_t a, std::int64_t b) const {
    cf64 sum{};
    for (std::size_t k = 0; k < fluxes.size(); ++k)
      sum += fluxes[k] * waves[k][a] * std::conj(waves[k][b]);
    return sum;
  }
  cf64 signal(std::int64_t a, std::int64_t b) const {
    return gains[a] * std::conj(gains[b]) * model(a, b);
  }
  /// Without noise.
  Equations exact() const {
    Equations e(n, 1);
    for (std::int64_t b = 0; b < n; ++b)
      for (std::int64_t a = 0; a < b; ++a) e.add(0, a, b, signal(a, b), model(a, b), 1);
    return e;
  }
  /// Noise of an input behind its gain: power |g|^2.
  double noise(std::int64_t a) const { return std::norm(gains[a]); }
};

/// Covariances of n_samples voltages of the array, drawn from the distribution of Wishart by
/// Bartlett's decomposition: the time does not depend on n_samples.
class SampleCovariance {
 public:
  explicit SampleCovariance(const SimulatedArray& array) : n_(array.n), root_(n_ * n_) {
    for (std::int64_t i = 0; i < n_; ++i) {  // R = L L^H
      for (std::int64_t j = 0; j <= i; ++j) {
        cf64 sum = array.signal(i, j) + (i == j ? array.noise(i) : 0.0);
        for (std::int64_t k = 0; k < j; ++k)
          sum -= root_[i * n_ + k] * std::conj(root_[j * n_ + k]);
        root_[i * n_ + j] = i == j ? std::sqrt(sum.real()) : sum / root_[j * n_ + j].real();
      }
    }
  }
  /// [a][b], a >= b. @pre n_samples - n_inputs > 50
  std::vector<cf64> draw(double n_samples, std::uint64_t seed) const {
    std::vector<cf64> x(n_ * n_), bartlett(n_ * n_), out(n_ * n_);
    for (std::int64_t i = 0; i < n_; ++i) {
      for (std::int64_t j = 0; j < i; ++j) bartlett[i * n_ + j] = normal(combine(seed, i, j));
      // Half a chi^2 of 2 (n_samples - i) degrees of freedom, after Wilson and Hilferty.
      const double half = n_samples - static_cast<double>(i), ninth = 1 / (18 * half);
      const double z = gaussian(combine(seed, 99, i) * 2);
      bartlett[i * n_ + i] =
          std::sqrt(half * std::pow(1 - 2 * ninth + z * std::sqrt(2 * ninth), 3));
    }
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t k = 0; k <= i; ++k)
        for (std::int64_t j = 0; j <= k; ++j)
          x[i * n_ + j] += root_[i * n_ + k] * bartlett[k * n_ + j];
    for (std::int64_t i = 0; i < n_; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        cf64 sum{};
        for (std::int64_t k = 0; k <= j; ++k) sum += x[i * n_ + k] * std::conj(x[j * n_ + k]);
        out[i * n_ + j] = sum / n_samples;
      }
    }
    return out;
  }

 private:
  std::int64_t n_;
  std::vector<cf64> root_;
};

/// Equations of a sample covariance, rows divided by the root of their autocorrelation, which is
/// put into `scales`.
inline Equations equations_of(const SimulatedArray& array, const std::vector<cf64>& covariance,
                              double n_samples, std::vector<double>& scales) {
  const std::int64_t n = array.n;
  Equations e(n, 1);
  scales.clear();
  for (std::int64_t a = 0; a < n; ++a)
    scales.push_back(1 / std::sqrt(covariance[a * n + a].real()));
  for (std::int64_t b = 0; b < n; ++b)
    for (std::int64_t a = 0; a < b; ++a)
      e.add(0, a, b, scales[a] * scales[b] * std::conj(covariance[b * n + a]), array.model(a, b),
            n_samples);
  return e;
}

inline Config config_of(const Equations& e, const std::string& implementation) {
  Config config;
  config.n_inputs = e.n_inputs();
  config.n_solutions = e.n_solutions();
  config.implementation = implementation;
  return config;
}

inline Solutions solve(const Equations& e, Config config, int n_workers = 1) {
  Queue queue = Queue::cpu(n_workers);
  Solutions solutions;
  make_solver(config)->execute(queue, e, solutions);
  return solutions;
}

/// Phases of found / true against their mean, radians.
inline std::vector<double> phase_errors(const Solutions& found, const std::vector<cf64>& gains) {
  cf64 mean{};
  std::vector<double> errors;
  for (std::size_t a = 0; a < gains.size(); ++a) {
    const cf64 ratio = found.gains[a] / gains[a];
    mean += ratio / std::abs(ratio);
  }
  for (std::size_t a = 0; a < gains.size(); ++a)
    errors.push_back(std::arg(found.gains[a] / gains[a] * std::conj(mean)));
  return errors;
}

}  // namespace ryle::calibrate::test
