// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <fitsio.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "ryle/pipeline/grid/grid_scans.hpp"

/// Small files of scans, and maps read back.
namespace ryle::pipeline {

inline std::vector<float> read_cube(const std::string& path, std::vector<long>& shape) {
  fitsfile* file = nullptr;
  int status = 0, n_axes = 0;
  fits_open_diskfile(&file, path.c_str(), READONLY, &status);
  fits_get_img_dim(file, &n_axes, &status);
  shape.resize(static_cast<std::size_t>(n_axes));
  fits_get_img_size(file, n_axes, shape.data(), &status);
  long n = 1;
  for (const long s : shape) n *= s;
  std::vector<float> values(static_cast<std::size_t>(n));
  fits_read_img(file, TFLOAT, 1, n, nullptr, values.data(), nullptr, &status);
  fits_close_file(file, &status);
  EXPECT_EQ(status, 0) << path;
  return values;
}

inline void put(hid_t file, const char* name, hid_t type, const void* data,
                std::vector<hsize_t> shape) {
  const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  const hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
  H5Dclose(set);
  H5Sclose(space);
}

class Scratch {
 public:
  Scratch()
      : folder_(std::filesystem::temp_directory_path() /
                ("ryle_grid_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string file(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

// Scans about (l, b) = (120, -5) in galactic coordinates, three channels.
struct Scans {
  std::vector<double> lon, lat;
  std::vector<float> values;  // [sample][channel]
};
inline Scans some_scans() {
  Scans s;
  std::mt19937 random(5);
  std::uniform_real_distribution<double> u(-0.5, 0.5);
  for (int k = 0; k < 4'000; ++k) {
    s.lon.push_back(120 + u(random));
    s.lat.push_back(-5 + u(random));
    for (int c = 0; c < 3; ++c) s.values.push_back(static_cast<float>(10 * c + s.lat.back()));
  }
  return s;
}
inline std::string write_scans(const Scratch& scratch, const Scans& s) {
  const std::string path = scratch.file("scans.h5");
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  put(file, "glon", H5T_NATIVE_DOUBLE, s.lon.data(), {s.lon.size()});
  put(file, "glat", H5T_NATIVE_DOUBLE, s.lat.data(), {s.lat.size()});
  put(file, "spectra", H5T_NATIVE_FLOAT, s.values.data(), {s.lon.size(), 3});
  H5Fclose(file);
  return path;
}

inline GridOptions options_of(const Scratch& scratch, const std::string& file) {
  GridOptions o;
  o.files = {file};
  o.output = scratch.file("map.fits");
  o.kernel = "gauss:3arcmin";
  o.n_workers = 2;
  o.implementation = "cpu";  // "auto" depends on the machine
  o.overwrite = true;
  return o;
}

/// A limit of memory under which so many channels fit at a time, and no more. @unit bytes
inline std::int64_t limit_for(GridOptions options, std::int64_t n_channels) {
  options.memory_bytes = 0;
  const GridPlan whole = plan_grid(options).plan;
  options.memory_bytes = whole.total_bytes + whole.absent_bytes;
  while (plan_grid(options).plan.n_channels_at_a_time > n_channels)
    options.memory_bytes -= options.memory_bytes / 64;
  return options.memory_bytes;
}

inline void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b,
                             const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << what;
}

}  // namespace ryle::pipeline
