// SPDX-License-Identifier: BSD-3-Clause
// What a gridded image is divided by.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>

#include "ryle/core/units.hpp"
#include "ryle/engine/image/geometry.hpp"
#include "ryle/math/fft.hpp"

namespace ryle::image {
namespace {

constexpr std::int64_t kMaxLags = 2 * kMaxSupport - 1;
using Lags = std::array<std::array<cf64, kMaxLags>, kMaxLags>;  // [y + k - 1][x + k - 1]

// Adds sum_r w(r + d) conj(w(r)) of one k x k function.
void add_autocorrelation(Lags& lags, const std::vector<cf64>& w, std::int64_t k) {
  const auto at = [&](std::int64_t y, std::int64_t x) { return w[std::size_t(y * k + x)]; };
  for (std::int64_t y = 0; y < k; ++y) {
    for (std::int64_t x = 0; x < k; ++x) {
      for (std::int64_t v = 0; v < k; ++v) {
        for (std::int64_t u = 0; u < k; ++u) {
          lags[std::size_t(y - v + k - 1)][std::size_t(x - u + k - 1)] +=
              at(y, x) * std::conj(at(v, u));
        }
      }
    }
  }
}

// The same for a separable function: the product of two 1-D autocorrelations.
void add_separable(Lags& lags, const AntennaCells& cells, std::int64_t k) {
  std::array<double, kMaxLags> x{}, y{};
  for (std::int64_t i = 0; i < k; ++i) {
    for (std::int64_t j = 0; j < k; ++j) {
      x[std::size_t(i - j + k - 1)] +=
          cells.weight_x[std::size_t(i)] * cells.weight_x[std::size_t(j)];
      y[std::size_t(i - j + k - 1)] +=
          cells.weight_y[std::size_t(i)] * cells.weight_y[std::size_t(j)];
    }
  }
  for (std::int64_t v = 0; v < 2 * k - 1; ++v) {
    for (std::int64_t u = 0; u < 2 * k - 1; ++u) {
      lags[std::size_t(v)][std::size_t(u)] += y[std::size_t(v)] * x[std::size_t(u)];
    }
  }
}

// @eq sum_d K(d) exp(2 pi i d.(p - G/2) / G), real because K(-d) = conj(K(d))
std::vector<double> transformed(const Lags& lags, std::int64_t k, std::int64_t g, double scale) {
  std::vector<cf64> roots;
  for (std::int64_t j = 0; j < g; ++j) roots.push_back(math::unit_root(j, g));
  const auto turn = [&](std::int64_t lag, std::int64_t pixel) {
    const std::int64_t j = lag * (pixel - g / 2) % g;
    return roots[std::size_t(j < 0 ? j + g : j)];
  };
  const std::int64_t n = 2 * k - 1;
  std::vector<double> taper(g * g);
  std::vector<cf64> rows(n * g);
  for (std::int64_t v = 0; v < n; ++v) {
    for (std::int64_t x = 0; x < g; ++x) {
      cf64 sum = 0;
      for (std::int64_t u = 0; u < n; ++u) {
        sum += lags[std::size_t(v)][std::size_t(u)] * turn(u - k + 1, x);
      }
      rows[std::size_t(v * g + x)] = sum * scale;
    }
  }
  for (std::int64_t y = 0; y < g; ++y) {
    for (std::int64_t v = 0; v < n; ++v) {
      const cf64 w = turn(v - k + 1, y);
      const double re = w.real(), im = w.imag();
      const cf64* row = &rows[std::size_t(v * g)];
      double* out = &taper[std::size_t(y * g)];
      for (std::int64_t x = 0; x < g; ++x) out[x] += row[x].real() * re - row[x].imag() * im;
    }
  }
  return taper;
}

// Mean over the used antennas of |FFT w_a|^2 of one polarization.
std::vector<double> mean_power_pattern(const AllSkyConfig& config,
                                       const std::vector<std::vector<cf64>>& weights,
                                       std::int64_t pol) {
  const auto used = antennas_used(config);
  const std::int64_t pols = n_pols(config);
  Lags lags{};
  double n = 0;
  for (std::size_t a = 0; a < used.size(); ++a) {
    if (!used[a]) continue;
    add_autocorrelation(lags, weights[a * std::size_t(pols) + std::size_t(pol)],
                        config.function.support);
    n += 1;
  }
  return transformed(lags, config.function.support, config.n_pixels, n > 0 ? 1 / n : 1);
}

// Nodes and weights of Gauss and Legendre on (-1, 1).
template <std::size_t N>
std::array<std::array<double, 2>, N> gauss_legendre() {
  std::array<std::array<double, 2>, N> rule{};
  for (std::size_t i = 0; i < N; ++i) {
    double x = std::cos(kPi * (static_cast<double>(i) + 0.75) / (static_cast<double>(N) + 0.5));
    double slope = 1;
    for (int step = 0; step < 20; ++step) {
      double p = 1, before = 0;
      for (std::size_t n = 1; n <= N; ++n) {
        const auto d = static_cast<double>(n);
        const double next = ((2 * d - 1) * x * p - (d - 1) * before) / d;
        before = p;
        p = next;
      }
      slope = static_cast<double>(N) * (x * p - before) / (x * x - 1);
      x -= p / slope;
    }
    rule[i] = {x, 2 / ((1 - x * x) * slope * slope)};
  }
  return rule;
}

}  // namespace

std::vector<double> correlated_taper(const AllSkyConfig& config, std::int64_t channel) {
  if (config.function.apertures.empty()) {
    const auto used = antennas_used(config);
    const auto cells = antenna_cells(config, channel);
    Lags lags{};
    double n = 0;
    for (std::size_t a = 0; a < used.size(); ++a) {
      if (!used[a]) continue;
      add_separable(lags, cells[a], config.function.support);
      n += 1;
    }
    return transformed(lags, config.function.support, config.n_pixels, n > 0 ? 1 / n : 1);
  }
  const auto weights = aperture_weights(config, channel);
  auto taper = mean_power_pattern(config, weights, 0);
  if (n_pols(config) == 1) return taper;
  const std::size_t size = taper.size();
  const auto yy = mean_power_pattern(config, weights, 1);
  taper.insert(taper.end(), yy.begin(), yy.end());
  for (std::size_t p = 0; p < size; ++p) {
    taper.push_back(std::sqrt(std::max(0.0, taper[p] * taper[size + p])));
  }
  return taper;
}

std::vector<double> direct_taper(const AllSkyConfig& config) {
  const std::int64_t g = config.n_pixels;
  const auto k = static_cast<double>(config.function.support);
  // u = (k/2) sin(theta): the square root at the edge of w becomes a smooth cosine.
  auto rule = gauss_legendre<96>();
  for (auto& [node, weight] : rule) {
    const double theta_rad = 0.5 * kPi * node;
    weight *= std::exp(config.function.beta_per_cell * k * (std::cos(theta_rad) - 1)) *
              std::cos(theta_rad) * 0.25 * kPi * k;
    node = 0.5 * k * std::sin(theta_rad);
  }
  std::vector<double> axis;
  for (std::int64_t p = 0; p < g; ++p) {
    const double turns_per_cell = static_cast<double>(p - g / 2) / static_cast<double>(g);
    double sum = 0;
    for (const auto& [u, weight] : rule) sum += weight * std::cos(2 * kPi * turns_per_cell * u);
    axis.push_back(sum);
  }
  std::vector<double> taper;
  taper.reserve(g * g);
  for (const double y : axis) {
    for (const double x : axis) taper.push_back(y * x);
  }
  return taper;
}

}  // namespace ryle::image
