// SPDX-License-Identifier: BSD-3-Clause
#include <fitsio.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ryle/io/base/crc32c.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/image/image_file.hpp"
#include "tests/io/scratch.hpp"
#include "tests/io/simulated_sky.hpp"

namespace ryle {
namespace {

using test::exit_code_of;
using test::Scratch;

SkyImage ramp(const Observation& o, std::int64_t n) {
  SkyImage image;
  image.n_pixels = n;
  image.stokes = {1};
  image.cell_direction_cosine = 0.01;
  image.center = o.phase_center;
  image.frequency = o.frequency;
  image.start_tai_ns = test::kStart_tai_ns;
  image.centroid_tai_ns = test::kStart_tai_ns + 1'000'000'000;
  for (std::int64_t k = 0; k < n * n; ++k) image.pixels.push_back(static_cast<float>(k));
  return image;
}

double key(fitsfile* file, const char* name) {
  double value = NAN;
  int status = 0;
  fits_read_key_dbl(file, name, &value, nullptr, &status);
  EXPECT_EQ(status, 0) << name;
  return value;
}

TEST(FitsImage, HeaderAndPixels) {
  const Scratch dir;
  const Observation o = test::make_observation({});
  const SkyImage image = ramp(o, 6);
  write_fits_image(dir / "sky.fits", image, o, false);
  fitsfile* file = nullptr;
  int status = 0;
  fits_open_diskfile(&file, (dir / "sky.fits").c_str(), READONLY, &status);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(key(file, "CRPIX1"), 4);  // N/2 + 1
  EXPECT_EQ(key(file, "CRPIX2"), 4);
  EXPECT_LT(key(file, "CDELT1"), 0);
  EXPECT_NEAR(key(file, "CDELT2"), 0.01 / kDegree_rad, 1e-12);
  EXPECT_NEAR(key(file, "CRVAL1"), o.phase_center.ra_rad / kDegree_rad, 1e-11);
  EXPECT_NEAR(key(file, "CRVAL2"), o.phase_center.dec_rad / kDegree_rad, 1e-11);
  // Four channels averaged into one plane: its centre and its width are the band's.
  EXPECT_NEAR(key(file, "CRVAL3"), o.frequency.band_center_hz(), 1e-3);
  EXPECT_NEAR(key(file, "CDELT3"), 4 * o.frequency.channel_width_hz, 1e-6);
  std::vector<float> pixels(36);
  fits_read_img_flt(file, 1, 1, 36, 0, pixels.data(), nullptr, &status);
  EXPECT_EQ(pixels, image.pixels);
  int data_ok = 0;
  int hdu_ok = 0;
  fits_verify_chksum(file, &data_ok, &hdu_ok, &status);
  EXPECT_EQ(data_ok, 1);
  EXPECT_EQ(hdu_ok, 1);
  fits_close_file(file, &status);
}

TEST(FitsImage, RejectsWhatItCannotSay) {
  const Scratch dir;
  const Observation o = test::make_observation({});
  SkyImage image = ramp(o, 6);
  image.pixels.pop_back();
  EXPECT_EQ(exit_code_of([&] { write_fits_image(dir / "a.fits", image, o, false); }),
            ExitCode::config);
  image = ramp(o, 6);
  image.stokes = {1, 2, 4};
  image.pixels.resize(3 * 36);
  EXPECT_EQ(exit_code_of([&] { write_fits_image(dir / "a.fits", image, o, false); }),
            ExitCode::unavailable);
  EXPECT_THAT(dir.names(), testing::IsEmpty());
}

TEST(FitsImage, InjectedErrorLeavesNothing) {
  const Scratch dir;
  const Observation o = test::make_observation({});
  set_publish_fault_hook([](std::string_view operation, const std::string&) {
    return operation == "write" ? ENOSPC : 0;
  });
  EXPECT_EQ(exit_code_of([&] { write_fits_image(dir / "a.fits", ramp(o, 6), o, false); }),
            ExitCode::io);
  set_publish_fault_hook({});
  EXPECT_THAT(dir.names(), testing::IsEmpty());
}

TEST(FitsImage, BracketsInNamesAreNotALanguage) {
  const Scratch dir;
  const Observation o = test::make_observation({});
  write_fits_image(dir / "sky[1:2,3:4].fits", ramp(o, 4), o, false);
  EXPECT_THAT(dir.names(), testing::ElementsAre("sky[1:2,3:4].fits"));
}

TEST(Crc32c, KnownValue) {
  EXPECT_EQ(io::crc32c("123456789", 9), 0xE3069283U);
  EXPECT_EQ(io::crc32c("", 0), 0U);
}

}  // namespace
}  // namespace ryle
