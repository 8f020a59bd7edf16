// SPDX-License-Identifier: BSD-3-Clause
// More samples than are planned at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ryle/core/units.hpp"
#include "tests/pipeline/grid/scans_support.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::size_t kSamples = grid::kSamplesTogether + 20'000, kChannels = 16;

// HiFAST's layout with weights, and flags that say what the value gives away: 1000
// where it must not count.
std::string write_many(const Scratch& scratch) {
  std::vector<double> ra(kSamples), dec(kSamples), weight(kSamples);
  std::vector<float> values(kChannels * kSamples);
  std::vector<std::int8_t> flags(kChannels * kSamples);
  std::mt19937 random(3);
  std::uniform_real_distribution<double> u(-0.5, 0.5);
  for (double& x : ra) x = 10 + u(random);
  std::sort(ra.begin(), ra.end());  // plans are of other places, as drift scans are
  for (std::size_t k = 0; k < kSamples; ++k) {
    dec[k] = u(random);
    weight[k] = 1 + u(random);
    for (std::size_t c = 0; c < kChannels; ++c) {
      const bool bad = (k + c) % 997 == 0;
      flags[kChannels * k + c] = bad ? 1 : 0;
      values[kChannels * k + c] =
          bad ? 1000.0F : static_cast<float>(ra[k] - 10 + dec[k]) * static_cast<float>(c + 1) + 3;
    }
  }
  std::vector<double> freq_mhz;
  for (std::size_t c = 0; c < kChannels; ++c) freq_mhz.push_back(1400 + static_cast<double>(c));
  const std::string path = scratch.file("many.hdf5");
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Gclose(H5Gcreate2(file, "S", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  put(file, "S/ra", H5T_NATIVE_DOUBLE, ra.data(), {kSamples});
  put(file, "S/dec", H5T_NATIVE_DOUBLE, dec.data(), {kSamples});
  put(file, "S/weight", H5T_NATIVE_DOUBLE, weight.data(), {kSamples});
  put(file, "S/freq", H5T_NATIVE_DOUBLE, freq_mhz.data(), {kChannels});
  put(file, "S/Ta", H5T_NATIVE_FLOAT, values.data(), {kSamples, kChannels});
  put(file, "S/is_rfi", H5T_NATIVE_INT8, flags.data(), {kSamples, kChannels});
  H5Fclose(file);
  return path;
}

TEST(GridTogether, SamplesOfSeveralPlansAddUp) {
  const Scratch scratch;
  GridOptions o = options_of(scratch, write_many(scratch));
  o.kernel = "gauss:4arcmin";
  o.target = "center=10,0 size=0.6x0.6deg cell=4arcmin proj=SIN";
  o.scans.weights = "column:S/weight";
  std::vector<long> shape;
  const GridSummary s = grid_scans(o);
  EXPECT_EQ(s.n_samples, static_cast<std::int64_t>(kSamples));
  EXPECT_GT(s.out_of_reach, static_cast<std::int64_t>(kSamples / 5)) << "of all plans";
  const auto map = read_cube(o.output, shape);
  const auto count = read_cube(scratch.file("map.count.fits"), shape);
  ASSERT_EQ(shape, (std::vector<long>{10, 10, 16})) << "flags differ from channel to channel";
  // All pairs in double, with one plan: float32 is to 2e-6 of it (grid.md 15).
  o.implementation = "reference";
  o.channels = "0:2";
  grid_scans(o);
  const auto want = read_cube(o.output, shape);
  const auto want_count = read_cube(scratch.file("map.count.fits"), shape);
  for (std::size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(map[i], want[i], 2e-6 * std::abs(want[i])) << i;
    ASSERT_EQ(count[i], want_count[i]) << i;
  }
  // A block of two plans and one more: sums of all cells that a block reached count.
  o.implementation = "cpu";
  o.block_samples = grid::kSamplesTogether + 9'000;
  grid_scans(o);
  const auto blocks = read_cube(o.output, shape);
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(blocks[i], want[i], 2e-6 * std::abs(want[i])) << i;
  o.block_samples = kGridBlockSamples;
  // Some channels at a time, with plans that are kept or made again: the same bits.
  o.channels.clear();
  o.memory_bytes = plan_grid(o).plan.total_bytes * 3 / 4;
  EXPECT_TRUE(plan_grid(o).plan.keeps_plans);
  EXPECT_GT(plan_grid(o).plan.n_parts, 2);
  const GridSummary kept = grid_scans(o);
  expect_same_bits(read_cube(o.output, shape), map, "plans kept");
  EXPECT_EQ(kept.out_of_reach, s.out_of_reach);
  while (plan_grid(o).plan.keeps_plans) o.memory_bytes -= o.memory_bytes / 64;
  grid_scans(o);
  expect_same_bits(read_cube(o.output, shape), map, "plans made again");
}

}  // namespace
}  // namespace ryle::pipeline
