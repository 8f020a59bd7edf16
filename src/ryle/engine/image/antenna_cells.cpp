// SPDX-License-Identifier: BSD-3-Clause
// Antennas on the grid: cells, weights of the exponential of a semicircle, phase of the height.
#include <algorithm>
#include <cmath>
#include <complex>

#include "ryle/core/units.hpp"
#include "ryle/engine/image/geometry.hpp"

namespace ryle::image {
namespace {

struct Box {
  std::array<double, 2> low_m{}, high_m{};
};

Box box_of_used(const AllSkyConfig& config) {
  Box box;
  bool first = true;
  const auto used = antennas_used(config);
  for (std::size_t a = 0; a < used.size(); ++a) {
    if (!used[a]) continue;
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const double v = config.antenna_enu_m[a][axis];
      box.low_m[axis] = first ? v : std::min(box.low_m[axis], v);
      box.high_m[axis] = first ? v : std::max(box.high_m[axis], v);
    }
    first = false;
  }
  return box;
}

double cells_per_m(const AllSkyConfig& config, std::int64_t channel) {
  return config.channels.center_hz(channel) / (kSpeedOfLight_m_per_s * config.cell_wavelengths);
}

// First of the k cells nearest to the point: they lie within k/2 of it.
std::int64_t first_cell(std::int64_t support, double point_cells) {
  const double lowest = point_cells - 0.5 * static_cast<double>(support);
  return static_cast<std::int64_t>(std::floor(lowest)) + 1;
}

}  // namespace

double es_function(const AntennaFunction& function, double u_cells) {
  const auto k = static_cast<double>(function.support);
  const double s = 2 * u_cells / k;
  const double z = 1 - s * s;
  return z > 0 ? std::exp(function.beta_per_cell * k * (std::sqrt(z) - 1)) : 0;
}

AntennaCells cells_around(const AntennaFunction& function, double x_cells, double y_cells) {
  AntennaCells cells;
  cells.first_x = first_cell(function.support, x_cells);
  cells.first_y = first_cell(function.support, y_cells);
  for (std::int64_t i = 0; i < function.support; ++i) {
    const auto n = static_cast<std::size_t>(i);
    cells.weight_x[n] = es_function(function, static_cast<double>(cells.first_x + i) - x_cells);
    cells.weight_y[n] = es_function(function, static_cast<double>(cells.first_y + i) - y_cells);
  }
  return cells;
}

std::vector<std::array<double, 2>> antenna_positions_cells(const AllSkyConfig& config,
                                                           std::int64_t channel) {
  const Box box = box_of_used(config);
  const double scale = cells_per_m(config, channel);
  const double half = 0.5 * static_cast<double>(config.n_pixels);
  const double x0_m = 0.5 * (box.low_m[0] + box.high_m[0]);
  const double y0_m = 0.5 * (box.low_m[1] + box.high_m[1]);
  std::vector<std::array<double, 2>> positions;
  positions.reserve(config.antenna_enu_m.size());
  for (const auto& enu_m : config.antenna_enu_m) {
    positions.push_back({half + (enu_m[0] - x0_m) * scale, half - (enu_m[1] - y0_m) * scale});
  }
  return positions;
}

std::vector<AntennaCells> antenna_cells(const AllSkyConfig& config, std::int64_t channel) {
  std::vector<AntennaCells> cells;
  for (const auto& [x, y] : antenna_positions_cells(config, channel)) {
    cells.push_back(cells_around(config.function, x, y));
  }
  return cells;
}

std::array<double, 2> aperture_extent_cells(const AllSkyConfig& config) {
  const Box box = box_of_used(config);
  const double scale = cells_per_m(config, config.channels.n_channels - 1);
  return {(box.high_m[0] - box.low_m[0]) * scale, (box.high_m[1] - box.low_m[1]) * scale};
}

cf64 height_phase(double frequency_hz, double up_m) {
  const double turns = frequency_hz * up_m / kSpeedOfLight_m_per_s;
  return std::polar(1.0, -2 * kPi * (turns - std::round(turns)));
}

}  // namespace ryle::image
