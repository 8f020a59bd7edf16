// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/cuda/function.hpp"

#include "ryle/engine/grid/radial_table.hpp"
#include "ryle/engine/grid/tiles.hpp"

namespace ryle::grid::detail {
namespace {

// Cubics between the user's rows from four values of each: the function is a cubic there.
std::vector<TableRow> rows_of(const Convolution& f) {
  const auto& t = f.table_theta_rad;
  const auto& y = f.table_value;
  std::vector<TableRow> rows;
  for (std::size_t i = 0; i + 1 < t.size(); ++i) {
    const double theta2 = t[i] * t[i], width = t[i + 1] * t[i + 1] - theta2;
    const auto above = [&](double s) {
      const double theta = std::sqrt(theta2 + s * width);
      return value(f, theta, theta, 0) - y[i];
    };
    const double d1 = above(1.0 / 3), d2 = above(2.0 / 3), d3 = y[i + 1] - y[i];
    const double a = 9 * d1 - 4.5 * d2 + d3, b = 0.5 * (27 * d1 - d3) - 4 * a;
    rows.push_back({theta2, 1 / width, y[i], a, b, d3 - a - b});
  }
  return rows;
}

}  // namespace

PairTables make_pair_tables(const Convolution& c, bool in_double) {
  PairTables tables;
  PairFunction& f = tables.function;
  f.function = c.function;
  f.chord = support_chord(c);
  f.chord2 = f.chord * f.chord;
  f.wide = c.support_rad > 1.6 * 0.017453292519943295;
  f.sigma = c.sigma_rad;
  f.minor = c.minor_rad;
  f.major = c.major_rad;
  f.cos_pa = std::cos(c.position_angle_rad);
  f.sin_pa = std::sin(c.position_angle_rad);
  f.a = c.a_rad;
  f.b = c.b_rad;
  if (c.function == Function::table) tables.rows = rows_of(c);
  f.rows = tables.rows.data();
  f.n_rows = static_cast<int>(tables.rows.size());
  if (in_double) return tables;
  if (c.function == Function::gauss) {
    f.weighing = Weighing::gauss;
    f.log2_per_rad2 = static_cast<float>(-0.5 / (c.sigma_rad * c.sigma_rad * std::log(2.0)));
    return tables;
  }
  if (!is_radial(c)) return tables;
  tables.cubic = radial_table(c);
  if (tables.cubic.empty()) return tables;
  f.weighing = Weighing::table;
  f.cubic = tables.cubic.data();
  f.n_intervals = kRadialIntervals;
  f.per_rad2 = kRadialIntervals / (c.support_rad * c.support_rad);
  return tables;
}

}  // namespace ryle::grid::detail
