// SPDX-License-Identifier: BSD-3-Clause
// What other gridders do to files and options (grid.md 16).
#include <cmath>

#include "ryle/core/units.hpp"
#include "tests/pipeline/grid/scans_support.hpp"

namespace ryle::pipeline {
namespace {

// HEGrid drops the last channel of an odd number, grids nothing of one, and writes a single plane.
TEST(GridPeerDefects, OddNumbersOfChannelsAndEveryPlane) {
  const Scratch scratch;
  Scans scans = some_scans();
  GridOptions o = options_of(scratch, write_scans(scratch, scans));
  o.target = "cell=6arcmin";
  grid_scans(o);
  std::vector<long> shape;
  const auto cube = read_cube(o.output, shape);
  ASSERT_EQ(shape[2], 3);
  const auto cells = static_cast<std::size_t>(shape[0] * shape[1]);
  const std::size_t middle = static_cast<std::size_t>(shape[1] / 2 * shape[0] + shape[0] / 2);
  for (std::size_t c = 0; c < 3; ++c)
    EXPECT_NEAR(cube[c * cells + middle], 10 * static_cast<double>(c) - 5, 0.05);
  o.channels = "2:3";
  o.output = scratch.file("one.fits");
  grid_scans(o);
  const auto one = read_cube(o.output, shape);
  ASSERT_EQ(one.size(), cells);
  for (std::size_t i = 0; i < cells; ++i)
    ASSERT_TRUE(one[i] == cube[2 * cells + i] || std::isnan(one[i]));
}

// HEGrid copies paths into 180 bytes.
TEST(GridPeerDefects, PathsOfAnyLength) {
  const Scratch scratch;
  std::string folder = scratch.file("scans");
  for (int k = 0; k < 5; ++k) folder += "/" + std::string(60, static_cast<char>('a' + k));
  std::filesystem::create_directories(folder);
  const std::string file = folder + "/scans.h5";
  std::filesystem::rename(write_scans(scratch, some_scans()), file);
  GridOptions o = options_of(scratch, file);
  o.target = "cell=6arcmin";
  o.output = folder + "/map.fits";
  grid_scans(o);
  std::vector<long> shape;
  EXPECT_FALSE(read_cube(o.output, shape).empty());
}

// HEGrid's --beam_size never reaches its kernel: always 300".
TEST(GridPeerDefects, TheBeamReachesTheKernel) {
  const Scratch scratch;
  GridOptions o = options_of(scratch, write_scans(scratch, some_scans()));
  o.target = "center=120,-5 size=0.6x0.6deg cell=3arcmin";
  o.kernel = "mean";
  double counts[2] = {};
  for (const int wide : {0, 1}) {
    o.beam_fwhm_rad = (wide == 0 ? 6 : 12) * kDegree_rad / 60;
    grid_scans(o);
    std::vector<long> shape;
    for (const float n : read_cube(scratch.file("map.count.fits"), shape))
      counts[wide] += static_cast<double>(n);
  }
  EXPECT_NEAR(counts[1] / counts[0], 4, 0.1) << "samples within half the beam";
}

}  // namespace
}  // namespace ryle::pipeline
