// SPDX-License-Identifier: BSD-3-Clause
// What files of scans do not say, or say twice.
#include <algorithm>
#include <cmath>
#include <functional>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/pipeline/grid/grid_beam.hpp"
#include "tests/io/scan/scan_files.hpp"
#include "tests/pipeline/grid/scans_support.hpp"

namespace ryle::pipeline {
namespace {

std::string rejection_of(const GridOptions& o) {
  try {
    grid_scans(o);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}
bool holds(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}
std::string text_key(const std::string& path, const char* name) {
  fitsfile* file = nullptr;
  int status = 0;
  char value[80] = "";
  fits_open_diskfile(&file, path.c_str(), READONLY, &status);
  fits_read_key(file, TSTRING, name, value, nullptr, &status);
  int ignored = 0;
  fits_close_file(file, &ignored);
  return status == 0 ? value : "none";
}

TEST(GridInputEdges, TheSameFileTwiceIsRejected) {
  const Scratch scratch;
  const std::string file = write_scans(scratch, some_scans());
  GridOptions o = options_of(scratch, file);
  o.target = "cell=2arcmin";
  const std::string link = scratch.file("link.h5"), copy = scratch.file("copy.h5");
  std::filesystem::create_hard_link(file, link);
  std::filesystem::copy_file(file, copy);
  for (const std::string& again : {file, link, copy})
    for (const bool sums : {false, true}) {
      o.files = {file, again};
      o.accumulate = sums ? scratch.file("sums.rgrid") : "";
      const std::string message = rejection_of(o);
      EXPECT_NE(message.find("would count twice"), std::string::npos) << again << ": " << message;
      EXPECT_NE(message.find(again), std::string::npos) << message;
      EXPECT_FALSE(std::filesystem::exists(o.output));
      EXPECT_FALSE(std::filesystem::exists(scratch.file("sums.rgrid")));
    }
  // As long, but other samples.
  Scans other = some_scans();
  other.values[7] += 1;
  std::filesystem::remove(link);
  std::filesystem::rename(file, scratch.file("first.h5"));
  o.files = {scratch.file("first.h5"), write_scans(scratch, other)};
  EXPECT_EQ(grid_scans(o).n_samples, 8'000);
}

TEST(GridInputEdges, AUnitIsNotInvented) {
  const Scratch scratch;
  GridOptions o = options_of(scratch, write_scans(scratch, some_scans()));
  o.target = "cell=2arcmin";
  GridSummary s = grid_scans(o);
  EXPECT_EQ(s.unit, "");
  EXPECT_TRUE(holds(s.warnings, "--unit K says it"));
  EXPECT_EQ(text_key(o.output, "BUNIT"), "none");
  o.unit = "mK";
  s = grid_scans(o);
  EXPECT_EQ(text_key(o.output, "BUNIT"), "mK");
  EXPECT_FALSE(holds(s.warnings, "--unit"));
}

// Longitudes of a field of 4 by 4 degrees in hours, in a file that does not say so.
TEST(GridInputEdges, HoursReadAsDegreesAreDoubted) {
  const Scratch scratch;
  Scans s = some_scans();
  for (std::size_t k = 0; k < s.lon.size(); ++k) {
    s.lon[k] = 1.56 + (s.lon[k] - 120) * 4 / 15 / std::cos(30.6 * kDegree_rad);
    s.lat[k] = 30.6 + (s.lat[k] + 5) * 4;
  }
  const std::string path = scratch.file("hours.h5");
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  put(file, "ra", H5T_NATIVE_DOUBLE, s.lon.data(), {s.lon.size()});
  put(file, "dec", H5T_NATIVE_DOUBLE, s.lat.data(), {s.lat.size()});
  put(file, "Ta", H5T_NATIVE_FLOAT, s.values.data(), {s.lon.size(), 3});
  H5Fclose(file);
  GridOptions o = options_of(scratch, path);
  o.target = "cell=6arcmin";
  o.kernel = "gauss:8arcmin";
  EXPECT_TRUE(holds(grid_scans(o).warnings, "--ra-unit hours"));
  o.scans.longitude_unit = "hours";
  const GridSummary right = grid_scans(o);
  EXPECT_FALSE(holds(right.warnings, "--ra-unit"));
  EXPECT_NEAR(right.center_longitude_deg, 1.56 * 15, 0.1);
  o.scans.longitude_unit = "deg";
  EXPECT_FALSE(holds(grid_scans(o).warnings, "--ra-unit"));
  o.files = {write_scans(scratch, some_scans())};  // 120 hours
  o.scans.longitude_unit = "hours";
  EXPECT_NE(rejection_of(o).find("in another unit"), std::string::npos);
}

struct Tracks {
  std::vector<double> lon, lat;
  void add(double lon_deg, double lat_deg) {
    lon.push_back(lon_deg);
    lat.push_back(lat_deg);
  }
  double interval_arcmin() const {
    Queue queue = Queue::cpu(1);
    const auto p =
        grid::positions(queue, lon.data(), lat.data(), static_cast<std::int64_t>(lon.size()));
    return sampling_interval(p) / kDegree_rad * 60;
  }
};

constexpr double kSpacing_deg = 6.0 / 60;

// Right ascensions of drift scans at one declination each: curved on any map of them.
Tracks drift_scans(double first_deg, double last_deg, double low_deg, int n) {
  Tracks t;
  for (int i = 0; i < n; ++i) {
    const double dec = low_deg + kSpacing_deg * i;
    for (double ra = first_deg + 0.003 * (i % 7); ra < last_deg; ra += 0.02)
      t.add(ra, dec + 0.002 * std::sin(ra));
  }
  return t;
}

TEST(GridBeam, SpacingIsFoundForTracksOfAnyShape) {
  const double want = kSpacing_deg * 60;
  const auto near = [&](const Tracks& t, const char* what) {
    EXPECT_GT(t.interval_arcmin(), 0.68 * want) << what;
    EXPECT_LT(t.interval_arcmin(), 1.05 * want) << what;
  };
  near(drift_scans(50, 100, 31, 60), "curved tracks");
  near(drift_scans(0, 360, 31, 12), "around the sky");
  near(drift_scans(0, 60, 84, 55), "beside the pole");
  near(drift_scans(358, 362, -2, 40), "across 0 h");
  Tracks two = drift_scans(50, 53, 31, 30);
  for (const Tracks& more : {drift_scans(60, 63, 20, 30), drift_scans(64, 66, 50, 20)}) {
    two.lon.insert(two.lon.end(), more.lon.begin(), more.lon.end());
    two.lat.insert(two.lat.end(), more.lat.begin(), more.lat.end());
  }
  near(two, "three fields");
  Tracks slanted, points, daisy, basket;
  for (int i = 0; i < 30; ++i)
    for (int k = 0; k < 300; ++k) {
      const double along = 0.01 * k, across = kSpacing_deg * i;
      slanted.add(10 + 0.8 * along - 0.6 * across, 0.6 * along + 0.8 * across);
    }
  near(slanted, "slanted tracks");
  std::mt19937 random(3);
  std::normal_distribution<double> jitter(0, kSpacing_deg / 40);
  for (int i = 0; i < 20; ++i)
    for (int j = 0; j < 20; ++j)
      for (int k = 0; k < 25; ++k)
        points.add(10 + kSpacing_deg * i + jitter(random), kSpacing_deg * j + jitter(random));
  near(points, "pointings");
  // Petals (a daisy) of 1 degree: 31 crossings of the circle at its edge, closer within.
  for (int k = 0; k < 40'000; ++k) {
    const double t = 2 * kPi * k / 40'000, r = std::cos(31 * t);
    daisy.add(10 + r * std::cos(t), r * std::sin(t));
  }
  EXPECT_GT(daisy.interval_arcmin(), 2) << "daisy";
  EXPECT_LT(daisy.interval_arcmin(), 12) << "daisy";
  for (int i = 0; i < 31; ++i)
    for (int k = 0; k < 300; ++k) {
      basket.add(10 + 0.01 * k, kSpacing_deg * i);
      basket.add(10 + kSpacing_deg * i, 0.01 * k);
    }
  near(basket, "crossed scans");
}

TEST(GridBeam, OneTrackHasNoSpacing) {
  EXPECT_EQ(drift_scans(50, 100, 31, 1).interval_arcmin(), 0);
  Tracks slanted, arc;
  for (int k = 0; k < 3'000; ++k) {
    slanted.add(10 + 0.001 * k, 0.0007 * k);
    arc.add(10 + std::cos(0.001 * k), std::sin(0.001 * k));
  }
  EXPECT_EQ(slanted.interval_arcmin(), 0);
  EXPECT_EQ(arc.interval_arcmin(), 0);
}

TEST(GridBeam, ADishSaysItsOwn) {
  const FrequencyAxis band{1'420e6 - 5e5, 1e4, 101};
  const BeamFound fast = beam_of_telescope("FAST", band);
  EXPECT_NEAR(fast.fwhm_rad / kDegree_rad * 60, 2.95, 0.02);
  EXPECT_NE(fast.from.find("300 m of FAST"), std::string::npos);
  EXPECT_NEAR(beam_of_telescope("NRAO_GBT", band).fwhm_rad / kDegree_rad * 60, 8.85, 0.05);
  EXPECT_EQ(beam_of_telescope("FASTER", band).fwhm_rad, 0);
  EXPECT_EQ(beam_of_telescope("FAST", {}).fwhm_rad, 0) << "no frequency";
}

}  // namespace
}  // namespace ryle::pipeline
