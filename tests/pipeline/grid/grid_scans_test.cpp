// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/grid/grid_scans.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "tests/pipeline/grid/scans_support.hpp"
#include "tests/support/data_path.hpp"

namespace ryle::pipeline {
namespace {

// PROVENANCE of the data: Cygrid's double map agrees with the direct sum in all but 9 of 20,199
// cells, where it misses a sample at the edge of the support (up to 1.9e-4 K).
TEST(GridScans, Messier33IsTheDirectSum) {
  RYLE_REQUIRE_DATA(scans, "singledish/fast_m33/1421-1425_hor_input1.hdf5");
  const Scratch scratch;
  GridOptions o = options_of(scratch, scans);
  o.kernel = "gauss";
  o.beam_fwhm_rad = 2.9 / 60 * kDegree_rad;
  o.target = "center=23.46,30.66 size=3x3deg cell=1arcmin";
  o.picture = scratch.file("map.png");
  std::vector<std::vector<float>> maps;
  for (const auto precision : {grid::Precision::f32, grid::Precision::f64}) {
    o.precision = precision;
    const GridSummary s = grid_scans(o);
    EXPECT_EQ(s.covered_cells, 20'199);
    EXPECT_EQ(s.n_samples, 69'768);
    EXPECT_EQ(s.bad_positions + s.absent.nan_value, 0);
    EXPECT_NEAR(s.peak_value, 1.3621, 5e-5);
    // 1.115 beams (grid.md 2): less than the root of the squares, the function ends at 3 sigma.
    EXPECT_NEAR(s.beam_fwhm_deg * 60, 1.115 * 2.9, 0.0015);
    std::vector<long> shape;
    maps.push_back(read_cube(o.output, shape));
    EXPECT_EQ(shape, (std::vector<long>{180, 180, 1}));
  }
  for (std::size_t i = 0; i < maps[0].size(); ++i) {
    ASSERT_EQ(std::isnan(maps[0][i]), std::isnan(maps[1][i]));
    if (std::isnan(maps[0][i])) continue;
    ASSERT_NEAR(maps[0][i], maps[1][i], 1e-6 * 1.3621);
  }
  EXPECT_GT(std::filesystem::file_size(o.picture), 10'000U);
  // All pairs, for the brightest part: float32 is to 2e-6 of the direct sum (grid.md 15).
  o.target = "center=23.55,30.57 size=0.4x0.4deg cell=1arcmin";
  std::vector<long> shape;
  o.implementation = "reference";
  grid_scans(o);
  const auto want = read_cube(o.output, shape);
  o.implementation = "cpu";
  o.precision = grid::Precision::f32;
  grid_scans(o);
  const auto got = read_cube(o.output, shape);
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got[i], want[i], 2e-6 * std::abs(want[i])) << i;
}

TEST(GridScans, DefaultsShowTheGalaxy) {
  RYLE_REQUIRE_DATA(scans, "singledish/fast_m33/1421-1425_hor_input1.hdf5");
  const Scratch scratch;
  GridOptions o = options_of(scratch, scans);
  o.kernel = "gauss";
  const GridSummary s = grid_scans(o);
  EXPECT_EQ(s.warnings.size(), 2U)
      << "the beam is a guess and said to be one, the unit is not known";
  EXPECT_EQ(s.unit, "");
  EXPECT_NEAR(s.peak_longitude_deg, 23.55, 0.03);
  EXPECT_NEAR(s.peak_latitude_deg, 30.57, 0.03);
  EXPECT_GT(s.covered_cells, 9 * s.width * s.height / 10);
  EXPECT_EQ(s.width % 2, 0);
}

TEST(GridScans, BlocksOfChannelsAreOneShot) {
  const Scratch scratch;
  GridOptions o = options_of(scratch, write_scans(scratch, some_scans()));
  o.target = "cell=2arcmin";
  const GridSummary whole = grid_scans(o);
  EXPECT_EQ(whole.frame, "galactic");
  EXPECT_EQ(whole.n_channels, 3);
  std::vector<long> shape;
  const auto at_once = read_cube(o.output, shape);
  o.memory_bytes = limit_for(o, 1);
  EXPECT_EQ(plan_grid(o).plan.n_parts, 3);
  grid_scans(o);
  const auto in_blocks = read_cube(o.output, shape);
  ASSERT_EQ(at_once.size(), in_blocks.size());
  for (std::size_t i = 0; i < at_once.size(); ++i)
    ASSERT_TRUE(at_once[i] == in_blocks[i] || (std::isnan(at_once[i]) && std::isnan(in_blocks[i])))
        << i;
  // Each channel is its constant and the latitude.
  const auto n = static_cast<std::size_t>(whole.width * whole.height);
  const std::size_t middle =
      static_cast<std::size_t>(whole.height / 2 * whole.width + whole.width / 2);
  for (std::size_t c = 0; c < 3; ++c)
    EXPECT_NEAR(at_once[c * n + middle], 10 * static_cast<double>(c) - 5, 0.02);
  o.memory_bytes = 1'000;
  EXPECT_THROW(grid_scans(o), ConfigError);
}

TEST(GridScans, AnotherFrameIsTheSameSky) {
  const Scratch scratch;
  GridOptions o = options_of(scratch, write_scans(scratch, some_scans()));
  o.target = "frame=icrs cell=2arcmin";
  const GridSummary s = grid_scans(o);
  EXPECT_EQ(s.frame, "icrs");
  // (120, -5) galactic is RA 7.3804, Dec 57.7469 (ERFA g2icrs through astropy 5.2).
  EXPECT_NEAR(s.center_longitude_deg, 7.3804, 0.03);
  EXPECT_NEAR(s.center_latitude_deg, 57.7469, 0.03);
  EXPECT_EQ(s.out_of_reach, 0);
  // A map made again from the header of this one.
  std::vector<long> shape;
  const auto first = read_cube(o.output, shape);
  o.target = o.output;
  o.output = scratch.file("again.fits");
  grid_scans(o);
  const auto again = read_cube(o.output, shape);
  for (std::size_t i = 0; i < first.size(); ++i)
    ASSERT_TRUE(std::isnan(first[i]) ? std::isnan(again[i])
                                     : std::abs(first[i] - again[i]) < 2e-6 * 20)
        << i;
}

TEST(GridScans, MistakesSayWhatWouldWork) {
  const Scratch scratch;
  const std::string file = write_scans(scratch, some_scans());
  const auto message = [&](const std::function<void(GridOptions&)>& change) -> std::string {
    GridOptions o = options_of(scratch, file);
    change(o);
    try {
      grid_scans(o);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(message([](GridOptions& o) { o.kernel = "gauss:2.9"; }).find("needs a unit"),
            std::string::npos);
  EXPECT_NE(message([](GridOptions& o) { o.kernel = "box:2arcmin"; }).find("no such function"),
            std::string::npos);
  EXPECT_NE(message([](GridOptions& o) { o.target = "nowhere.fits"; }).find("no such file"),
            std::string::npos);
  EXPECT_NE(message([](GridOptions& o) { o.target = "center=1,2 cell=2"; }).find("needs a unit"),
            std::string::npos);
  EXPECT_NE(message([](GridOptions& o) {
              o.target = "center=10,80 size=1x1deg cell=2arcmin";
            }).find("none of the 4000 samples"),
            std::string::npos);
  EXPECT_NE(message([](GridOptions& o) { o.target = "proj=XYZ"; }).find("wcslib"),
            std::string::npos);
  EXPECT_NE(message([](GridOptions& o) { o.scans.data = "/absent"; }).find("spectra [4000,3]"),
            std::string::npos);
  EXPECT_NE(message([](GridOptions& o) { o.output.clear(); }).find("--png"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(scratch.file("map.fits")))
      << "no product of a run that failed";
}

TEST(MapProjection, FramesAreThoseOfErfa) {
  // The galactic pole and center (Hipparcos vol. 1, 1.5.11; the center to the digits astropy
  // prints).
  const auto r = frame_rotation(SkyFrame::icrs, SkyFrame::galactic);
  const auto at = [](double lon_deg, double lat_deg) {
    const double a = lon_deg * kDegree_rad, d = lat_deg * kDegree_rad;
    return std::array<double, 3>{std::cos(d) * std::cos(a), std::cos(d) * std::sin(a), std::sin(d)};
  };
  const auto turned = [&](const std::array<double, 3>& v, std::size_t row) {
    return r[3 * row] * v[0] + r[3 * row + 1] * v[1] + r[3 * row + 2] * v[2];
  };
  EXPECT_NEAR(turned(at(192.85948, 27.12825), 2), 1, 1e-12);
  EXPECT_NEAR(turned(at(266.404988, -28.936178), 0), 1, 1e-12);
  const auto back = frame_rotation(SkyFrame::galactic, SkyFrame::icrs);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) EXPECT_NEAR(r[3 * i + j], back[3 * j + i], 1e-15);
  // FK5 at J2000 differs from ICRS by tens of milliarcseconds, not more.
  const auto fk5 = frame_rotation(SkyFrame::fk5, SkyFrame::icrs);
  EXPECT_NEAR(fk5[1], 0, 1.5e-7);
  EXPECT_NE(fk5[1], 0);
}

TEST(MapProjection, PixelsAndDirectionsAreInverse) {
  for (const char* code : {"SIN", "TAN", "ZEA", "CAR", "SFL", "AIT"}) {
    const MapProjection map = MapProjection::make({code, SkyFrame::icrs, 359.9, 0, 0.5, 40, 20});
    std::vector<double> lon(40), lat(40);
    map.directions(7, 1, lon.data(), lat.data());
    for (std::size_t i = 0; i < 40; ++i) {
      const auto pixel = map.pixel_of(lon[i], lat[i]);
      EXPECT_NEAR(pixel[0], static_cast<double>(i), 1e-9) << code;
      EXPECT_NEAR(pixel[1], 7, 1e-9) << code;
    }
    EXPECT_GT(std::fmod(lon[0] + 180, 360), std::fmod(lon[39] + 180, 360)) << "east is left";
  }
}

}  // namespace
}  // namespace ryle::pipeline
