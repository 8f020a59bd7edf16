// SPDX-License-Identifier: BSD-3-Clause
// The header against the sky: T-EP-05. wcslib reads what we wrote; ERFA says where a direction is.
#include <fitsio.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#if RYLE_HAVE_WCSLIB
#include <wcslib/wcs.h>
#include <wcslib/wcshdr.h>
#endif

#include <cmath>

#include "ryle/core/units.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/image/image_file.hpp"
#include "tests/io/scratch.hpp"

namespace ryle {
namespace {

using test::exit_code_of;
using test::Scratch;

struct Case {
  std::string name;
  double latitude_deg, longitude_deg;
  std::string utc;
  double alpha, beta;
  std::int64_t n_pixels;
  /// Aberration and deflection bend the sky against the one tangent point by up to 14 arcsec at 75
  /// deg from it: 0.004 pixels of 1.1 deg, 0.014 of 0.28 deg. Everything else is exact.
  double limit_px;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

Observation at(const Case& c) {
  Observation o;
  o.array.name = "test";
  o.array.latitude_rad = c.latitude_deg * kDegree_rad;
  o.array.longitude_rad = c.longitude_deg * kDegree_rad;
  o.array.height_m = 1000;
  o.frequency = {60e6, 25e3, 12};
  return o;
}

SkyImage image_of(const Case& c, const Observation& o) {
  SkyImage image;
  image.n_pixels = c.n_pixels;
  image.n_channels = 3;
  image.n_channels_per_bin = 4;
  image.frequency = o.frequency;
  image.cell_direction_cosine = 1 / (static_cast<double>(c.n_pixels) * 0.40);
  image.plane_alpha = c.alpha;
  image.plane_beta = c.beta;
  image.start_tai_ns = tai_ns_from_utc_iso(c.utc);
  image.centroid_tai_ns = image.start_tai_ns + 2'500'000'000;
  image.exposure_s = 5;
  image.pixels.assign(static_cast<std::size_t>(3 * image.plane_size()), 0.0F);
  place_at_zenith(image, o.array);
  return image;
}

#if RYLE_HAVE_WCSLIB
/// The coordinate system of a file's primary image, as wcslib reads it.
class Wcs {
 public:
  explicit Wcs(const std::string& path) {
    fitsfile* file = nullptr;
    int status = 0, n_keys = 0, n_rejected = 0;
    char* header = nullptr;
    fits_open_diskfile(&file, path.c_str(), READONLY, &status);
    fits_hdr2str(file, 1, nullptr, 0, &header, &n_keys, &status);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(wcspih(header, n_keys, WCSHDR_none, 2, &n_rejected, &n_, &wcs_), 0);
    EXPECT_EQ(n_rejected, 0) << "wcslib rejects cards";
    EXPECT_EQ(wcsset(wcs_), 0);
    fits_free_memory(header, &status);
    fits_close_file(file, &status);
  }
  ~Wcs() { wcsvfree(&n_, &wcs_); }
  Wcs(const Wcs&) = delete;
  Wcs& operator=(const Wcs&) = delete;
  std::array<double, 4> pixel(const SkyDirection& s, double frequency_hz) {
    double world[4] = {s.ra_rad / kDegree_rad, s.dec_rad / kDegree_rad, frequency_hz, 1};
    double phi = 0, theta = 0, image[4];
    std::array<double, 4> pixel{};
    int bad = 0;
    EXPECT_EQ(wcss2p(wcs_, 1, 4, world, &phi, &theta, image, pixel.data(), &bad), 0);
    return pixel;
  }
  SkyDirection sky(double x, double y) {
    double pixel[4] = {x, y, 1, 1}, image[4], phi = 0, theta = 0, world[4];
    int bad = 0;
    EXPECT_EQ(wcsp2s(wcs_, 1, 4, pixel, image, &phi, &theta, world, &bad), 0);
    return {world[0] * kDegree_rad, world[1] * kDegree_rad};
  }

 private:
  int n_ = 0;
  wcsprm* wcs_ = nullptr;
};

class ImageWcs : public testing::TestWithParam<Case> {};

TEST_P(ImageWcs, DirectionsFallOnTheirPixels) {
  const Case& c = GetParam();
  const Scratch dir;
  const Observation o = at(c);
  const SkyImage image = image_of(c, o);
  write_fits_image(dir / "sky.fits", image, o, false);
  Wcs wcs(dir / "sky.fits");
  double worst = 0, worst_back_rad = 0;
  const double g_delta = 1 / image.cell_direction_cosine;
  for (const double zd_deg : {0.0, 10.0, 30.0, 60.0, 75.0}) {
    for (int az_deg = 0; az_deg < 360; az_deg += 15) {
      const double z = zd_deg * kDegree_rad, a = az_deg * kDegree_rad;
      const Vector3 s{std::sin(z) * std::sin(a), std::sin(z) * std::cos(a), std::cos(z)};
      const auto sky = direction_of_enu(o.array, s, image.centroid_tai_ns);
      const auto pixel = wcs.pixel(sky, 60e6 + 37.5e3);
      const auto half = static_cast<double>(c.n_pixels) / 2 + 1;
      const double x = half - (s[0] - c.alpha * (1 - s[2])) * g_delta;
      const double y = half + (s[1] - c.beta * (1 - s[2])) * g_delta;
      worst = std::max(worst, std::hypot(pixel[0] - x, pixel[1] - y));
      EXPECT_NEAR(pixel[2], 1, 1e-9);
      const SkyDirection back = wcs.sky(pixel[0], pixel[1]);
      worst_back_rad = std::max(worst_back_rad, std::abs(back.dec_rad - sky.dec_rad));
    }
  }
  EXPECT_LE(worst, c.limit_px);
  EXPECT_LE(worst_back_rad, 1e-9);
  RecordProperty("worst_px", std::to_string(worst));
}

/// What text and JSON say of a point is what the header says, wherever the image is centered: at
/// the zenith, slanted and turned, or at any direction that dumps are phased to.
TEST_P(ImageWcs, PlacesAreThoseOfTheHeader) {
  const Case& c = GetParam();
  const Scratch dir;
  Observation o = at(c);
  o.earth_orientation.dut1_s = 0.3;
  const SkyImage zenith_image = image_of(c, o);
  int number = 0;
  for (const SkyDirection& center :
       {zenith_image.center, SkyDirection{139.5 * kDegree_rad, -12.1 * kDegree_rad},
        sun(zenith_image.centroid_tai_ns), SkyDirection{0.001, 1.5}}) {
    SkyImage image = zenith_image;
    if (number > 0) {
      image.center = center;
      image.north_angle_rad = image.plane_alpha = image.plane_beta = 0;
    } else {
      place_at_zenith(image, o.array, o.earth_orientation);
    }
    const std::string name = dir / ("sky" + std::to_string(number++) + ".fits");
    write_fits_image(name, image, o, false);
    Wcs wcs(name);
    const auto half = static_cast<double>(c.n_pixels) / 2 + 1;
    for (const auto& [l, m] : {std::array{0.0, 0.0}, std::array{0.3, -0.2}, std::array{-0.5, 0.6},
                               std::array{0.0, 0.9}}) {
      const SkyPosition place = place_of(image, o, l, m);
      const SkyDirection header =
          wcs.sky(half - l / image.cell_direction_cosine, half + m / image.cell_direction_cosine);
      // Aberration moves two directions apart by 20.5 arcsec times the chord between them.
      const double r2 = l * l + m * m;
      const double chord = std::sqrt(r2 + std::pow(1 - std::sqrt(1 - r2), 2));
      const double aberration_rad = 20.7 / 3600 * kDegree_rad * chord + 1e-9;
      const double d_ra = std::remainder(header.ra_rad - place.direction.ra_rad, 2 * kPi);
      EXPECT_NEAR(d_ra * std::cos(header.dec_rad), 0, aberration_rad) << number << " " << l;
      EXPECT_NEAR(header.dec_rad, place.direction.dec_rad, aberration_rad) << number << " " << l;
      // Azimuth and elevation are those of the same direction.
      const Vector3 enu =
          enu_of_direction(o.array, place.direction, image.centroid_tai_ns, o.earth_orientation);
      EXPECT_NEAR(std::sin(place.elevation_rad), enu[2], 1e-8);
      EXPECT_NEAR(std::cos(place.elevation_rad) * std::sin(place.azimuth_rad), enu[0], 1e-8);
      EXPECT_GE(place.azimuth_rad, 0);
      const auto point = point_of(image, o, place.direction);
      ASSERT_TRUE(point.has_value());
      EXPECT_NEAR((*point)[0], l, 1e-8);
      EXPECT_NEAR((*point)[1], m, 1e-8);
    }
  }
  const SkyPosition outside = place_of(zenith_image, o, 1.1, 0.2);
  EXPECT_TRUE(std::isnan(outside.direction.ra_rad));
}

INSTANTIATE_TEST_SUITE_P(
    Sites, ImageWcs,
    testing::Values(
        Case{"north2024", 34.35, -106.89, "2024-06-27T17:32:27", -0.0262, 0.0178, 128, 0.01},
        Case{"level2000", 34.35, -106.89, "2000-01-01T12:00:00", 0, 0, 128, 0.01},
        Case{"north2030", 34.35, -106.89, "2030-09-21T03:00:00", -0.0262, 0.0178, 144, 0.01},
        Case{"south2019", -26.7033, 116.6708, "2019-11-04T05:00:00", 0.01, -0.02, 128, 0.01},
        Case{"pole2030", 89.95, 10, "2030-03-01T00:00:00", 0.02, 0.03, 128, 0.01},
        Case{"southpole2000", -90, 0, "2000-06-01T00:00:00", 0.03, 0.01, 128, 0.01},
        Case{"steep", 52.9, 6.87, "2024-12-01T06:00:00", 0.10, -0.08, 128, 0.01},
        Case{"fine", 34.35, -106.89, "2024-06-27T17:32:27", -0.0262, 0.0178, 512, 0.02}),
    [](const auto& info) { return info.param.name; });

TEST(ImageWcsWrap, RightAscensionRunsThroughZero) {
  // Sidereal time passes 24 h during these four minutes: CRVAL1 wraps, the sky does not.
  Case c{"wrap", 34.35, -106.89, "2024-09-21T07:00:00", 0, 0, 128, 0.01};
  const Scratch dir;
  const Observation o = at(c);
  const std::int64_t base = tai_ns_from_utc_iso(c.utc);
  const double lst = local_sidereal_time_rad(o.array, base);
  const double to_wrap_s = (2 * kPi - lst) / (2 * kPi) * 86164.09;
  int below = 0, above = 0;
  for (const double offset_s : {-90.0, -1.0, 0.0, 1.0, 90.0}) {
    SkyImage image = image_of(c, o);
    image.centroid_tai_ns = base + std::llround((to_wrap_s + offset_s) * 1e9);
    place_at_zenith(image, o.array);
    const std::string path = dir / ("wrap" + std::to_string(below + above) + ".fits");
    write_fits_image(path, image, o, false);
    (image.center.ra_rad > kPi ? below : above)++;
    Wcs wcs(path);
    for (const double l : {-0.5, 0.0, 0.5}) {
      const SkyDirection s =
          direction_of_enu(o.array, {l, 0.1, std::sqrt(1 - l * l - 0.01)}, image.centroid_tai_ns);
      const auto pixel = wcs.pixel(s, 60e6 + 37.5e3);
      EXPECT_NEAR(pixel[0], 65 - l * 51.2, 0.01);
      EXPECT_NEAR(pixel[1], 65 + 0.1 * 51.2, 0.01);
    }
  }
  EXPECT_GT(below, 0);
  EXPECT_GT(above, 0);
}

TEST(ImageWcsBins, ChannelCentersAfterBinning) {
  const Scratch dir;
  const Case c{"bins", 34.35, -106.89, "2024-06-27T17:32:27", 0, 0, 8, 0.01};
  const Observation o = at(c);
  const SkyImage image = image_of(c, o);
  write_fits_image(dir / "sky.fits", image, o, false);
  Wcs wcs(dir / "sky.fits");
  for (int bin = 0; bin < 3; ++bin) {
    double mean_hz = 0;  // the mean of its channels, counted by hand
    for (int k = 0; k < 4; ++k) mean_hz += (60e6 + 25e3 * (4 * bin + k)) / 4;
    EXPECT_NEAR(wcs.pixel(image.center, mean_hz)[2], bin + 1, 1e-9);
  }
}
#endif  // RYLE_HAVE_WCSLIB

double number(fitsfile* file, const char* name) {
  double value = NAN;
  int status = 0;
  fits_read_key_dbl(file, name, &value, nullptr, &status);
  EXPECT_EQ(status, 0) << name;
  return value;
}
std::string text(fitsfile* file, const char* name) {
  char value[FLEN_VALUE] = "";
  int status = 0;
  fits_read_key_str(file, name, value, nullptr, &status);
  EXPECT_EQ(status, 0) << name;
  return value;
}
std::vector<float> values(fitsfile* file, std::size_t n) {
  std::vector<float> out(n, -99.0F);
  int status = 0;
  fits_read_img_flt(file, 1, 1, static_cast<LONGLONG>(n), 0, out.data(), nullptr, &status);
  EXPECT_EQ(status, 0);
  return out;
}

/// Products of the imager: [bin][plane][y][x] numbered bin 1000 + plane 100 + pixel.
SkyImage numbered(const Observation& o, const std::vector<int>& planes) {
  SkyImage image = image_of({"n", 34, -106, "2024-06-27T17:32:27", 0.01, 0.02, 4, 0}, o);
  image.frequency.n_channels = 10;  // bins of 4, 4, 2
  std::vector<float> pixels;
  std::vector<double> weights;
  for (int bin = 0; bin < 3; ++bin) {
    for (std::size_t p = 0; p < planes.size(); ++p) {
      for (int k = 0; k < 16; ++k)
        pixels.push_back(static_cast<float>(1000 * bin + 100 * static_cast<int>(p) + k));
    }
    for (const double w : {10.0, 20.0, 40.0}) weights.push_back(w + bin);
  }
  take_planes(image, pixels, weights, 3, planes);
  image.metadata = {"vis-grid", "ES k 7, cell 0.40", "cables.csv", "vis-grid/cpu:avx512", 12.5};
  return image;
}

TEST(ImageCube, CrossProductIsAComplexPlane) {
  const Scratch dir;
  const Observation o = at({"n", 34, -106, "", 0, 0, 4, 0});
  const SkyImage image = numbered(o, {-5, -6, kPlaneReXY, kPlaneImXY});
  write_fits_image(dir / "sky.fits", image, o, false);
  fitsfile* file = nullptr;
  int status = 0;
  fits_open_diskfile(&file, (dir / "sky.fits").c_str(), READONLY, &status);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(number(file, "NAXIS4"), 2);
  EXPECT_EQ(number(file, "CRVAL4"), -5);
  EXPECT_EQ(number(file, "CDELT4"), -1);
  EXPECT_EQ(values(file, 96)[48 + 16 + 3], 1103);  // YY, second bin, pixel 3
  EXPECT_EQ(text(file, "IMGPATH"), "vis-grid");
  EXPECT_EQ(text(file, "IMPLEMNT"), "vis-grid/cpu:avx512");
  EXPECT_EQ(text(file, "ANTFUNC"), "ES k 7, cell 0.40");
  EXPECT_EQ(text(file, "GAINSID"), "cables.csv");
  EXPECT_EQ(number(file, "LOSSPPM"), 12.5);
  EXPECT_EQ(text(file, "DATE-BEG"), "2024-06-27T17:32:27.000000");
  EXPECT_EQ(text(file, "DATE-AVG"), "2024-06-27T17:32:29.500000");
  EXPECT_EQ(text(file, "DATE-END"), "2024-06-27T17:32:32.000000");
  EXPECT_EQ(number(file, "LASTBIN"), 2);
  char weight[] = "WEIGHT", xy[] = "XY", bins[] = "BINS";
  fits_movnam_hdu(file, IMAGE_HDU, weight, 0, &status);
  int number_of_hdu = 0;
  EXPECT_EQ(fits_get_hdu_num(file, &number_of_hdu), 2);
  EXPECT_THAT(values(file, 6), testing::ElementsAre(10, 11, 12, 20, 21, 22));
  EXPECT_EQ(text(file, "CTYPE1"), "FREQ");
  fits_movnam_hdu(file, IMAGE_HDU, xy, 0, &status);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(text(file, "CTYPE5"), "COMPLEX");
  EXPECT_EQ(number(file, "NAXIS5"), 2);
  EXPECT_EQ(number(file, "CRVAL4"), -7);
  EXPECT_EQ(values(file, 96)[5], 205);             // real part, first bin
  EXPECT_EQ(values(file, 96)[48 + 32 + 5], 2305);  // imaginary part, third bin
  fits_movnam_hdu(file, BINARY_TBL, bins, 0, &status);
  ASSERT_EQ(status, 0);
  std::vector<double> centers(3);
  fits_read_col_dbl(file, 1, 1, 1, 3, 0, centers.data(), nullptr, &status);
  EXPECT_THAT(centers, testing::ElementsAre(60.0375e6, 60.1375e6, 60.2125e6));
  fits_close_file(file, &status);
}

TEST(ImageCube, WeightsOfStokesPlanes) {
  const Observation o = at({"n", 34, -106, "", 0, 0, 4, 0});
  const SkyImage image = numbered(o, {1, 2, 3, 4});
  EXPECT_THAT(image.weights, testing::ElementsAre(30, 32, 34, 30, 32, 34, 40, 41, 42, 40, 41, 42));
  EXPECT_EQ(image.pixels[static_cast<std::size_t>((3 * 3 + 1) * 16 + 2)], 1302);
}

TEST(ImageCube, RejectsBinsThatDoNotFit) {
  const Scratch dir;
  const Observation o = at({"n", 34, -106, "", 0, 0, 4, 0});
  SkyImage image = numbered(o, {1, 2, 3, 4});
  image.n_channels_per_bin = 3;  // 10 channels would be four planes
  EXPECT_EQ(exit_code_of([&] { write_fits_image(dir / "a.fits", image, o, false); }),
            ExitCode::config);
  image = numbered(o, {1, 2, 3, 4});
  image.weights.pop_back();
  EXPECT_EQ(exit_code_of([&] { write_fits_image(dir / "a.fits", image, o, false); }),
            ExitCode::config);
  EXPECT_EQ(exit_code_of([&] {
              write_fits_image(dir / "a.fits", numbered(o, {kPlaneReXY, kPlaneImXY}), o, false);
            }),
            ExitCode::unavailable);
  EXPECT_EQ(exit_code_of([&] { take_planes(image, {}, {}, 3, {1}); }), ExitCode::config);
  EXPECT_THAT(dir.names(), testing::IsEmpty());
}

TEST(ImageSeries, EveryImageHasItsOwnCoordinates) {
  const Scratch dir;
  const Observation o = at({"n", 34, -106, "", 0, 0, 4, 0});
  {
    FitsImageSeries unfinished(dir / "series.fits", o, false);
    unfinished.append(numbered(o, {1}));
  }
  EXPECT_THAT(dir.names(), testing::IsEmpty()) << "not published: nothing stays";
  FitsImageSeries series(dir / "series.fits", o, false);
  std::vector<double> ra_deg;
  for (int k = 0; k < 3; ++k) {
    SkyImage image = numbered(o, {1, 2, 3, 4});
    image.start_tai_ns += k * 60'000'000'000;
    image.centroid_tai_ns += k * 60'000'000'000;
    place_at_zenith(image, o.array);
    ra_deg.push_back(image.center.ra_rad / kDegree_rad);
    series.append(image);
  }
  EXPECT_EQ(series.n_images(), 3);
  series.publish();
  EXPECT_THAT(dir.names(), testing::ElementsAre("series.fits"));
  fitsfile* file = nullptr;
  int status = 0;
  fits_open_diskfile(&file, (dir / "series.fits").c_str(), READONLY, &status);
  char third[] = "IMAGE3", times[] = "TIMES";
  fits_movnam_hdu(file, IMAGE_HDU, third, 0, &status);
  ASSERT_EQ(status, 0);
  EXPECT_NEAR(number(file, "CRVAL1"), ra_deg[2], 1e-11);
  EXPECT_NEAR(ra_deg[2] - ra_deg[0], 120 / 86164.09 * 360, 1e-3) << "the sky turns";
  fits_movnam_hdu(file, BINARY_TBL, times, 0, &status);
  ASSERT_EQ(status, 0);
  std::vector<double> column(3);
  fits_read_col_dbl(file, 4, 1, 1, 3, 0, column.data(), nullptr, &status);
  EXPECT_EQ(column, ra_deg);
  fits_close_file(file, &status);
}

// A write fails in the second of three images: nothing of it stays, the others are whole.
TEST(ImageSeries, AFailedImageLeavesNothing) {
  const Scratch dir;
  const Observation o = at({"n", 34, -106, "", 0, 0, 4, 0});
  FitsImageSeries series(dir / "series.fits", o, false);
  series.append(numbered(o, {1, 2}));
  // The weights' write: the HDU of the pixels is there already.
  int n_writes = 0;
  set_publish_fault_hook([&](std::string_view operation, const std::string&) {
    return operation == "write" && ++n_writes == 2 ? ENOSPC : 0;
  });
  EXPECT_EQ(exit_code_of([&] { series.append(numbered(o, {1, 2})); }), ExitCode::io);
  set_publish_fault_hook({});
  EXPECT_EQ(series.n_images(), 1);
  series.append(numbered(o, {1, 2}));
  series.publish();
  fitsfile* file = nullptr;
  int status = 0, n_hdus = 0;
  fits_open_diskfile(&file, (dir / "series.fits").c_str(), READONLY, &status);
  fits_get_num_hdus(file, &n_hdus, &status);
  std::vector<std::string> names;
  for (int k = 2; k <= n_hdus && status == 0; ++k) {
    fits_movabs_hdu(file, k, nullptr, &status);
    char name[FLEN_VALUE] = "";
    fits_read_key(file, TSTRING, "EXTNAME", name, nullptr, &status);
    names.emplace_back(name);
  }
  EXPECT_EQ(status, 0);
  // Ten channels, four a bin: LASTBIN sends readers to BINS.
  EXPECT_THAT(names, testing::ElementsAre("IMAGE1", "WEIGHT1", "BINS", "IMAGE2", "WEIGHT2", "TIMES",
                                          "RYLE_OBSERVATION", "RYLE_APPLIED"));
  fits_close_file(file, &status);
}

TEST(ImageSeries, NamesSortByTime) {
  SkyImage image;
  image.start_tai_ns = tai_ns_from_utc_iso("2026-01-01T00:00:00.040");
  image.exposure_s = 1;
  EXPECT_EQ(image_file_name("sky", image, ".fits"), "sky_20260101T000000.040Z.fits");
  // Shorter than a second, down to one spectrum: 25 of 41.8 microseconds would share two names.
  image.exposure_s = 4.18e-5;
  EXPECT_EQ(image_file_name("sky", image, ".fits"), "sky_20260101T000000.040000000Z.fits");
  std::string before;
  for (int k = 0; k < 25; ++k) {
    image.start_tai_ns += 41'796;
    const std::string name = image_file_name("sky", image, ".fits");
    EXPECT_LT(before, name);
    before = name;
  }
}

}  // namespace
}  // namespace ryle
