// SPDX-License-Identifier: BSD-3-Clause
// The convolution function of a pair, on host and device. Private to the engine.
#pragma once
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "ryle/engine/grid/convolution.hpp"
#include "ryle/engine/grid/cuda/host_device.hpp"

namespace ryle::grid::detail {

/// How the weight of a pair is found: a Gaussian or a table of the squared angle in float32, else
/// the function itself in double.
enum class Weighing : std::uint8_t { gauss, table, exact };

/// Between rows of a user's table: y0 + s (a + s (b + s c)), s = (theta^2 - theta2) per_width.
struct TableRow {
  double theta2, per_width, y0, a, b, c;
};

/// Plain numbers and pointers to memory of whoever asks (host or device).
struct PairFunction {
  Weighing weighing = Weighing::exact;
  Function function = Function::gauss;
  bool wide = false;        ///< theta^2 from the chord needs more terms (support above 1.6 deg)
  float log2_per_rad2 = 0;  ///< gauss: -1 / (2 sigma^2 ln 2)
  double per_rad2 = 0;      ///< table: intervals per theta^2
  int n_intervals = 0;
  const float* cubic = nullptr;  ///< [n_intervals][4], lowest power first
  double sigma = 0, minor = 0, major = 0, cos_pa = 1, sin_pa = 0, a = 0, b = 0;
  int n_rows = 0;
  const TableRow* rows = nullptr;
  double chord = 0, chord2 = 0;  ///< of the support radius
};

/// A function and the tables that its pointers mean.
struct PairTables {
  PairFunction function;
  std::vector<float> cubic;
  std::vector<TableRow> rows;
};
/// @param in_double every pair asks the function itself
PairTables make_pair_tables(const Convolution& convolution, bool in_double);

/// theta^2 from the squared chord: 4 asin^2(c / 2) in powers of c^2.
RYLE_HD inline float squared_angle(float c2, bool wide) {
  const float c4 = times(c2, c2), base = add_product(c4, 1.0F / 12, c2);
  if (!wide) return base;
  const float more = add_product(c2, add_product(c2, 1.0F / 3150, 1.0F / 560), 1.0F / 90);
  return add_product(times(c4, c2), more, base);
}

RYLE_HD inline float gauss_value(const PairFunction& f, float c2) {
  return exp2f(times(squared_angle(c2, f.wide), f.log2_per_rad2));
}

RYLE_HD inline float cubic_value(const PairFunction& f, float c2) {
  const float theta2 = squared_angle(c2, f.wide);
  const double at = times(static_cast<double>(theta2), f.per_rad2);
  int k = static_cast<int>(at);
  k = k >= f.n_intervals ? f.n_intervals - 1 : k;
  const auto r = static_cast<float>(at - k);
  const float* p = f.cubic + 4 * k;
  return add_product(r, add_product(r, add_product(r, p[3], p[2]), p[1]), p[0]);
}

RYLE_HD inline double table_value(const PairFunction& f, double theta) {
  const double theta2 = times(theta, theta);
  int low = 0, high = f.n_rows;  // the last row at or below theta
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (f.rows[middle].theta2 <= theta2 ? low : high) = middle;
  }
  const TableRow& row = f.rows[low];
  const double s = times(theta2 - row.theta2, row.per_width);
  return add_product(s, add_product(s, add_product(s, row.c, row.b), row.a), row.y0);
}

/// K of two unit vectors `chord` apart in double: value() of convolution.hpp with the bearing of
/// the sample seen from the cell (grid.md 1).
RYLE_HD inline double exact_value(const PairFunction& f, const double* cell, const double* sample,
                                  double chord) {
  constexpr double kPi = 3.14159265358979323846;
  const double theta = 2 * asin(0.5 * chord);
  switch (f.function) {
    case Function::gauss:
      return exp(-0.5 * (theta / f.sigma) * (theta / f.sigma));
    case Function::jinc: {
      const double x = kPi * theta / f.a;
      return (x < 1e-9 ? 1.0 : 2 * j1(x) / x) * exp(-(theta / f.b) * (theta / f.b));
    }
    case Function::sinc: {
      const double x = kPi * theta / f.a;
      return (x < 1e-9 ? 1.0 : sin(x) / x) * exp(-(theta / f.b) * (theta / f.b));
    }
    case Function::table:
      return table_value(f, theta);
    case Function::mean:
      return 1;
    case Function::ellipse:
      break;
  }
  const double across = hypot(cell[0], cell[1]);
  const bool pole = across < 1e-12;
  const double ex = pole ? 1 : -cell[1] / across, ey = pole ? 0 : cell[0] / across;
  const double e = add_product(ex, sample[0], times(ey, sample[1]));
  const double north[3] = {-times(cell[2], ey), times(cell[2], ex),
                           add_product(cell[0], ey, -times(cell[1], ex))};
  const double n = dot(north, sample);
  const double length = hypot(e, n);
  const double scale = length > 0 ? theta / length : 0;
  const double xi = scale * e, eta = scale * n;
  const double along = add_product(eta, f.cos_pa, times(xi, f.sin_pa)) / f.major;
  const double beside = add_product(xi, f.cos_pa, -times(eta, f.sin_pa)) / f.minor;
  return exp(-0.5 * add_product(along, along, times(beside, beside)));
}

/// body(std::integral_constant<Weighing, ...>): double asks the function itself.
template <class Real, class Body>
void with_weighing(Weighing weighing, const Body& body) {
  if constexpr (sizeof(Real) == 4) {
    if (weighing == Weighing::gauss)
      return body(std::integral_constant<Weighing, Weighing::gauss>{});
    if (weighing == Weighing::table)
      return body(std::integral_constant<Weighing, Weighing::table>{});
  }
  body(std::integral_constant<Weighing, Weighing::exact>{});
}

}  // namespace ryle::grid::detail
