// SPDX-License-Identifier: BSD-3-Clause
// `ryle grid` on a device, files to files: the cube of the CPU, and no way of cutting a run changes
// a bit of it.
#include <cmath>
#include <limits>

#include "ryle/core/error.hpp"
#include "tests/cuda/cuda_test.hpp"
#include "tests/pipeline/grid/scans_support.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::size_t kChannels = 29;  // three groups of a device, the last one shorter

/// Scans as HEGrid stores them, with a weight a sample; values that are absent in one channel.
struct GridNight {
  std::vector<double> lon, lat;
  std::vector<float> weight, values;  // values: [channel][sample]
};

GridNight night_of(std::size_t n, unsigned seed) {
  GridNight s;
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> place(-0.5, 0.5);
  std::uniform_real_distribution<float> weight(0.5F, 2.0F);
  std::normal_distribution<float> noise;
  for (std::size_t k = 0; k < n; ++k) {
    s.lon.push_back(83 + place(random));
    s.lat.push_back(22 + place(random));
    s.weight.push_back(weight(random));
  }
  for (std::size_t c = 0; c < kChannels; ++c)
    for (std::size_t k = 0; k < n; ++k)
      s.values.push_back(static_cast<float>(10 + c) + noise(random));
  for (std::size_t k = 0; k < n; k += 61)
    s.values[7 * n + k] = k % 2 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                     : std::numeric_limits<float>::infinity();
  s.lat[3] = 91;
  return s;
}

std::string write_night(const Scratch& scratch, const std::string& name, const GridNight& s) {
  const std::string path = scratch.file(name);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const std::size_t n = s.lon.size();
  for (const char* group : {"coords", "value"})
    H5Gclose(H5Gcreate2(file, group, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  put(file, "coords/ra", H5T_NATIVE_DOUBLE, s.lon.data(), {n});
  put(file, "coords/dec", H5T_NATIVE_DOUBLE, s.lat.data(), {n});
  put(file, "u", H5T_NATIVE_FLOAT, s.weight.data(), {n});
  for (std::size_t c = 0; c < kChannels; ++c)
    put(file, ("value/flux_" + std::to_string(c)).c_str(), H5T_NATIVE_FLOAT, &s.values[c * n], {n});
  H5Fclose(file);
  return path;
}

struct GridCubes {
  std::vector<float> value, weight, count, noise;
};

class CudaGridFiles : public ryle::test::CudaTest {
 protected:
  GridOptions options(const std::string& file, const std::string& name,
                      const std::string& implementation) const {
    GridOptions o = options_of(scratch_, file);
    o.output = scratch_.file(name + ".fits");
    o.target = "center=83,22 size=0.9x0.8deg cell=1arcmin proj=SIN";
    o.implementation = implementation;
    o.noise = true;
    return o;
  }
  GridCubes cubes(const std::string& name) const {
    std::vector<long> shape;
    return {read_cube(scratch_.file(name + ".fits"), shape),
            read_cube(scratch_.file(name + ".weight.fits"), shape),
            read_cube(scratch_.file(name + ".count.fits"), shape),
            read_cube(scratch_.file(name + ".noise.fits"), shape)};
  }
  static void expect_same(const GridCubes& a, const GridCubes& b, const std::string& what) {
    expect_same_bits(a.value, b.value, what + ", values");
    expect_same_bits(a.weight, b.weight, what + ", weights");
    expect_same_bits(a.count, b.count, what + ", counts");
    expect_same_bits(a.noise, b.noise, what + ", noise");
  }
  // Counts alike; values as two runs in float differ, 2e-6 each where the weight exceeds 1, 2e-5
  // elsewhere (grid.md 15).
  static void expect_close(const GridCubes& got, const GridCubes& want) {
    ASSERT_EQ(got.value.size(), want.value.size());
    ASSERT_EQ(got.weight.size(), want.weight.size());
    expect_same_bits(got.count, want.count, "counts");
    const std::size_t n = got.value.size(), n_weights = got.weight.size();
    std::size_t covered = 0;
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(std::isnan(got.value[i]), std::isnan(want.value[i])) << i;
      if (std::isnan(got.value[i])) continue;
      const float w = want.weight[i % n_weights];
      covered += w > 1 ? 1 : 0;
      ASSERT_NEAR(got.value[i] / want.value[i], 1, w > 1 ? 4e-6 : 4e-5) << i;
      ASSERT_NEAR(got.weight[i % n_weights] / w, 1, w > 1 ? 4e-6 : 2e-5) << i;
    }
    EXPECT_GT(covered, n / 2);
  }
  Scratch scratch_;
};

TEST_F(CudaGridFiles, AreThoseOfTheCpu) {
  const std::string file = write_night(scratch_, "night.hdf5", night_of(9'000, 5));
  for (const bool weighted : {false, true}) {
    SCOPED_TRACE(weighted);
    GridOptions cpu = options(file, "cpu", "cpu"), cuda = options(file, "cuda", "cuda");
    if (weighted) cpu.scans.weights = cuda.scans.weights = "column:u";
    const GridSummary want = grid_scans(cpu), got = grid_scans(cuda);
    EXPECT_EQ(got.implementation, "cuda:gather");
    EXPECT_GT(got.plan.n_parts, 2);
    EXPECT_EQ(got.bad_positions, 1);
    EXPECT_GT(got.out_of_reach, 0);  // tiles of other sizes: what they pass over differs
    EXPECT_EQ(got.absent.nan_value, want.absent.nan_value);
    EXPECT_EQ(got.absent.inf_value, want.absent.inf_value);
    EXPECT_EQ(got.covered_cells, want.covered_cells);
    expect_close(cubes("cuda"), cubes("cpu"));
  }
}

TEST_F(CudaGridFiles, PartsOfChannelsAndRunsChangeNoBit) {
  const std::string file = write_night(scratch_, "night.hdf5", night_of(9'000, 5));
  GridOptions o = options(file, "whole", "cuda");
  grid_scans(o);
  const GridCubes whole = cubes("whole");
  o.output = scratch_.file("again.fits");
  grid_scans(o);
  expect_same(cubes("again"), whole, "again");
  o.output = scratch_.file("parts.fits");
  o.memory_bytes = limit_for(o, 4);
  EXPECT_GT(grid_scans(o).plan.n_parts, 7);
  expect_same(cubes("parts"), whole, "parts of channels");
}

TEST_F(CudaGridFiles, NightsAddUpInAnyOrder) {
  const std::vector<std::string> nights{
      write_night(scratch_, "a.hdf5", night_of(5'000, 5)),
      write_night(scratch_, "b.hdf5", night_of(3'000, 6)),
  };
  GridOptions o = options(nights[0], "whole", "cuda");
  o.files = nights;
  o.block_samples = 2'000;
  EXPECT_EQ(grid_scans(o).blocks_done, 5);
  const GridCubes whole = cubes("whole");
  GridOptions cpu = options(nights[0], "cpu", "cpu");
  cpu.files = nights;
  grid_scans(cpu);
  expect_close(whole, cubes("cpu"));
  o.accumulate = scratch_.file("field.rgrid");
  for (const std::size_t k : {1, 0}) {
    o.files = {nights[k]};
    o.output = scratch_.file("added.fits");
    grid_scans(o);
  }
  expect_same(cubes("added"), whole, "accumulated");
}

TEST_F(CudaGridFiles, MediansSayWhereTheyAreMade) {
  const std::string file = write_night(scratch_, "night.hdf5", night_of(2'000, 5));
  GridOptions o = options(file, "median", "cuda");
  o.noise = false;
  o.kernel = "median:radius=3arcmin";
  EXPECT_THROW(grid_scans(o), UnsupportedError);
  o.implementation = "auto";
  EXPECT_EQ(grid_scans(o).implementation.rfind("cuda", 0), std::string::npos);
}

}  // namespace
}  // namespace ryle::pipeline
