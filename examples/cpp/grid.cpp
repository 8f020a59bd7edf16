// SPDX-License-Identifier: BSD-3-Clause
// Grids samples scattered over a degree of sky to a map and prints its brightest cell.
#include <cmath>
#include <cstdio>
#include <random>
#include <ryle/engine/grid/grid.hpp>
#include <vector>

int main() {
  constexpr std::int64_t kSamples = 20000, kSide = 61;
  constexpr double kArcmin_rad = 3.14159265358979 / 10800;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> place(-0.5, 0.5);
  std::vector<double> lon, lat;
  std::vector<float> values;
  for (std::int64_t k = 0; k < kSamples; ++k) {  // a source 3' wide (sigma) at (10.1, +0.2) degrees
    lon.push_back(10 + place(random));
    lat.push_back(place(random));
    const double x = lon.back() - 10.1, y = lat.back() - 0.2;
    values.push_back(static_cast<float>(std::exp(-(x * x + y * y) / (2 * 0.05 * 0.05))));
  }
  std::vector<double> cell_lon, cell_lat;  // cells of 1', row by row
  for (std::int64_t y = 0; y < kSide; ++y) {
    for (std::int64_t x = 0; x < kSide; ++x) {
      cell_lon.push_back(10 + static_cast<double>(x - kSide / 2) / 60);
      cell_lat.push_back(static_cast<double>(y - kSide / 2) / 60);
    }
  }
  auto queue = ryle::Queue::cpu();
  ryle::grid::Config config;
  config.convolution.sigma_rad = 1 * kArcmin_rad;
  config.convolution.support_rad = 3 * kArcmin_rad;
  const auto gridder = ryle::grid::make_gridder(
      config,
      {ryle::grid::positions(queue, cell_lon.data(), cell_lat.data(), kSide * kSide), kSide});
  const auto plan =
      gridder->plan(queue, ryle::grid::positions(queue, lon.data(), lat.data(), kSamples));
  gridder->execute(queue, *plan, {.values = values.data()});
  const auto map = ryle::grid::finish(gridder->sums(), {}, 0);
  std::size_t peak = 0;
  for (std::size_t k = 1; k < map.value.size(); ++k)
    if (map.value[k] > map.value[peak]) peak = k;
  std::printf("%s: peak %.3f at lon %.3f lat %.3f degrees, %d samples\n",
              std::string(gridder->implementation()).c_str(), static_cast<double>(map.value[peak]),
              cell_lon[peak], cell_lat[peak], map.count[peak]);
}
