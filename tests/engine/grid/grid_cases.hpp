// SPDX-License-Identifier: BSD-3-Clause
// Fields of samples, maps and the comparison with the direct sum that the tests of the gridder
// share.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "ryle/core/units.hpp"
#include "ryle/engine/grid/grid.hpp"

namespace ryle::grid::cases {

inline constexpr double kArcmin_rad = kDegree_rad / 60;
inline constexpr float kInf = std::numeric_limits<float>::infinity();

struct Field {
  std::vector<double> lon_deg, lat_deg;
  Cells cells;
};

// Pixel centers of an orthographic map, north up, east left, as SIN has them.
inline Cells orthographic(double lon_deg, double lat_deg, std::int64_t nx, std::int64_t ny,
                          double cell_rad) {
  Cells cells;
  cells.width = nx;
  const double a = lon_deg * kDegree_rad, d = lat_deg * kDegree_rad;
  for (std::int64_t j = 0; j < ny; ++j)
    for (std::int64_t i = 0; i < nx; ++i) {
      const double l = -static_cast<double>(i - nx / 2) * cell_rad,
                   m = static_cast<double>(j - ny / 2) * cell_rad;
      const double r2 = l * l + m * m;
      const double n = r2 < 1 ? std::sqrt(1 - r2) : kNaN;
      const double up = n * std::cos(d) - m * std::sin(d);
      cells.directions.x.push_back(up * std::cos(a) - l * std::sin(a));
      cells.directions.y.push_back(up * std::sin(a) + l * std::cos(a));
      cells.directions.z.push_back(n * std::sin(d) + m * std::cos(d));
    }
  return cells;
}

// Samples scattered evenly over the map and a little beyond.
inline Field field(double lon_deg, double lat_deg, std::int64_t nx, std::int64_t ny, std::int64_t n,
                   unsigned seed = 1) {
  constexpr double kCell = 2 * kArcmin_rad;
  Field f;
  f.cells = orthographic(lon_deg, lat_deg, nx, ny, kCell);
  std::mt19937 random(seed);
  const double a = lon_deg * kDegree_rad, d = lat_deg * kDegree_rad;
  std::uniform_real_distribution<double> u(-0.55 * static_cast<double>(nx) * kCell,
                                           0.55 * static_cast<double>(nx) * kCell),
      v(-0.55 * static_cast<double>(ny) * kCell, 0.55 * static_cast<double>(ny) * kCell);
  for (std::int64_t k = 0; k < n; ++k) {
    const double l = u(random), m = v(random), w = std::sqrt(1 - l * l - m * m);
    const double up = w * std::cos(d) - m * std::sin(d);
    const double x = up * std::cos(a) - l * std::sin(a), y = up * std::sin(a) + l * std::cos(a);
    f.lon_deg.push_back(std::atan2(y, x) / kDegree_rad);
    f.lat_deg.push_back(std::asin(w * std::sin(d) + m * std::cos(d)) / kDegree_rad);
  }
  return f;
}

inline Convolution gauss(double n_sigma = 5) {
  Convolution c;
  c.sigma_rad = 73.89 / 60 * kArcmin_rad;
  c.support_rad = n_sigma * c.sigma_rad;
  return c;
}

// [channel][sample], of an order of 10
inline std::vector<float> values(std::int64_t n_channels, std::int64_t n, unsigned seed = 7) {
  std::mt19937 random(seed);
  std::normal_distribution<float> x(10, 3);
  std::vector<float> result(static_cast<std::size_t>(n_channels * n));
  for (auto& v : result) v = x(random);
  return result;
}

struct Case {
  Field field;
  Config config;
  std::vector<float> data;
  Samples samples;
};

inline Case make_case(Field f, Convolution c, std::int64_t n_channels) {
  Case result;
  result.field = std::move(f);
  result.config.convolution = std::move(c);
  result.config.n_channels = n_channels;
  const auto n = static_cast<std::int64_t>(result.field.lon_deg.size());
  result.data = values(n_channels, n);
  result.samples.channel_stride = n;
  return result;
}

inline std::unique_ptr<Gridder> run(const Case& c, const std::string& implementation,
                                    int n_workers = 2) {
  Queue queue = Queue::cpu(n_workers);
  Config config = c.config;
  config.implementation = implementation;
  auto gridder = make_gridder(config, c.field.cells);
  Samples samples = c.samples;
  samples.values = c.data.data();
  const auto plan =
      gridder->plan(queue, positions(queue, c.field.lon_deg.data(), c.field.lat_deg.data(),
                                     static_cast<std::int64_t>(c.field.lon_deg.size())));
  gridder->execute(queue, *plan, samples);
  return gridder;
}

struct Error {
  double value = 0, weight = 0, square = 0;
  std::int64_t counts = 0, covered = 0;
};
// Largest relative differences where the weight exceeds 1, and cells whose counts differ.
inline Error compare(const Sums& got, const Sums& want, double min_weight = 1) {
  Error e;
  for (std::int64_t c = 0; c < want.n_channels(); ++c)
    for (std::int64_t i = 0; i < want.n_cells(); ++i) {
      const Moments &a = got.moments(c, i), &b = want.moments(c, i);
      e.counts += a.count != b.count ? 1 : 0;
      e.covered += b.count > 0 ? 1 : 0;
      if (b.count == 0 || std::abs(b.weight) < min_weight) continue;
      e.weight = std::max(e.weight, std::abs(a.weight - b.weight) / std::abs(b.weight));
      e.square = std::max(e.square, std::abs(a.square - b.square) / b.square);
      const double v = got.weighted(c, i) / a.weight, w = want.weighted(c, i) / b.weight;
      e.value = std::max(e.value, std::abs(v - w) / std::abs(w));
    }
  return e;
}

// Tolerances of grid.md 15: float32 2e-6 where the weight exceeds 1, double 1e-12, counts equal.
inline void expect_close(const Case& c) {
  const auto want = run(c, "reference");
  for (const auto& name : available_implementations()) {
    if (name == "reference") continue;
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      Case here = c;
      here.config.precision = precision;
      const auto got = run(here, name);
      EXPECT_EQ(got->implementation(), name);
      const Error e = compare(got->sums(), want->sums());
      const double limit = precision == Precision::f64 ? 1e-12 : 2e-6;
      EXPECT_EQ(e.counts, 0) << name;
      EXPECT_GT(e.covered, 0);
      EXPECT_LT(e.value, limit) << name;
      EXPECT_LT(e.weight, limit) << name;
      EXPECT_LT(e.square, 2 * limit) << name;
    }
  }
}

}  // namespace ryle::grid::cases
