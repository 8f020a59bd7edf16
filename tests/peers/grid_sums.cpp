// SPDX-License-Identifier: BSD-3-Clause
// The gridder's sums in double, for comparison with other programs (compare_cygrid.py):
//   grid_sums KERNEL f32|f64 FOLDER
// reads lon, lat, values, cell_lon, cell_lat and writes weighted, weight, count: float64, degrees.
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>

#include "ryle/engine/grid/grid.hpp"

namespace {

std::vector<double> read_doubles(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<double> values(static_cast<std::size_t>(file.tellg()) / sizeof(double));
  file.seekg(0).read(reinterpret_cast<char*>(values.data()),
                     static_cast<std::streamsize>(values.size() * sizeof(double)));
  if (!file) throw std::runtime_error("cannot read " + path);
  return values;
}

void write_doubles(const std::string& path, const std::vector<double>& values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(double)));
  if (!file) throw std::runtime_error("cannot write " + path);
}

ryle::grid::Positions read_positions(ryle::Queue& queue, const std::string& stem) {
  const auto lon = read_doubles(stem + "lon"), lat = read_doubles(stem + "lat");
  return ryle::grid::positions(queue, lon.data(), lat.data(),
                               static_cast<std::int64_t>(lon.size()));
}

void sum(const std::string& kernel, const std::string& precision, const std::string& folder) {
  ryle::Queue queue = ryle::Queue::cpu();
  ryle::grid::Config config;
  config.convolution = ryle::grid::parse_convolution(kernel, 0);
  config.precision = precision == "f64" ? ryle::grid::Precision::f64 : ryle::grid::Precision::f32;
  auto gridder = ryle::grid::make_gridder(config, {read_positions(queue, folder + "/cell_"), 0});
  const auto in = read_doubles(folder + "/values");
  const std::vector<float> values(in.begin(), in.end());
  ryle::grid::Samples samples;
  samples.values = values.data();
  const auto plan = gridder->plan(queue, read_positions(queue, folder + "/"));
  gridder->execute(queue, *plan, samples);
  std::vector<double> weighted, weight, count;
  for (std::int64_t i = 0; i < gridder->sums().n_cells(); ++i) {
    const auto& m = gridder->sums().moments(0, i);
    weighted.push_back(gridder->sums().weighted(0, i));
    weight.push_back(m.weight);
    count.push_back(static_cast<double>(m.count));
  }
  write_doubles(folder + "/weighted", weighted);
  write_doubles(folder + "/weight", weight);
  write_doubles(folder + "/count", count);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: grid_sums KERNEL f32|f64 FOLDER\n");
    return 64;
  }
  try {
    sum(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 70;
  }
  return 0;
}
