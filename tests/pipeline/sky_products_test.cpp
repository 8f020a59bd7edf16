// SPDX-License-Identifier: BSD-3-Clause
// What images become on the disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ryle/pipeline/image/image_setup.hpp"
#include "ryle/pipeline/image/sky_products.hpp"
#include "tests/io/scratch.hpp"
#include "tests/support/light_curve_reader.hpp"

namespace ryle::pipeline {
namespace {

using test::Scratch;

constexpr std::int64_t kPixels = 16;

image::AllSkyConfig small_sky(std::int64_t n_channels, std::int64_t n_channels_per_bin) {
  image::AllSkyConfig sky;
  sky.antenna_enu_m = {{0, 0, 0}, {10, 0, 0}, {0, 10, 0}};
  sky.inputs = {{0, 0, false}, {1, 0, false}, {2, 0, false}};
  sky.channels = {60e6, 25e3, n_channels};
  sky.n_channels_per_bin = n_channels_per_bin;
  sky.n_pixels = kPixels;
  return sky;
}

Observation observation() {
  Observation o;
  o.array.name = "test";
  o.array.latitude_rad = 0.6;
  o.array.longitude_rad = -1.9;
  o.array.antennas = {{"A", {0, 0, 0}}, {"B", {10, 0, 0}}, {"C", {0, 10, 0}}};
  o.array.inputs = {{0, 0, 0, 0, 0, false}, {1, 0, 0, 0, 0, false}, {2, 0, 0, 0, 0, false}};
  o.frequency = {60e6, 25e3, 8};
  return o;
}

/// Nothing is written but what a test asks for.
ObservationConfig quiet(const Scratch& dir) {
  ObservationConfig config;
  config.output.directory = dir.path();
  config.output.name = "sky";
  config.image.fits = false;
  config.image.latest = false;
  return config;
}

/// Images of `length_ns` one after the other, of ten spectra each.
RawImages raw_image(const image::AllSkyConfig& sky, std::int64_t k, std::int64_t length_ns) {
  RawImages raw;
  raw.n_spectra = 10;
  raw.first_spectrum = 10 * k;
  raw.clock = {tai_ns_from_utc_iso("2026-01-01T00:00:00"), {10'000'000'000, length_ns}};
  const std::int64_t n_bins = image::n_bins(sky);
  raw.images.pixels.assign(static_cast<std::size_t>(n_bins * kPixels * kPixels), 1.0F);
  raw.images.weights.assign(static_cast<std::size_t>(3 * n_bins), 60.0);
  raw.images.n_spectra = 10;
  return raw;
}

// 0.4 ms: three images begin in the same millisecond.
TEST(SkyProducts, ShortImagesKeepTheirOwnNames) {
  const Scratch dir;
  ObservationConfig config = quiet(dir);
  config.image.fits = true;
  SkyMetadata metadata;
  metadata.sky = small_sky(8, 8);
  SkyProducts products(config, observation(), metadata);
  for (std::int64_t k = 0; k < 4; ++k) products.write(raw_image(metadata.sky, k, 400'000));
  products.finish();
  EXPECT_THAT(products.errors(), testing::IsEmpty());
  EXPECT_THAT(dir.names(), testing::ElementsAre("sky_image_20260101T000000.000000000Z.fits",
                                                "sky_image_20260101T000000.000400000Z.fits",
                                                "sky_image_20260101T000000.000800000Z.fits",
                                                "sky_image_20260101T000000.001200000Z.fits"));
}

// Eight channels in bins of three: the last has two, and its own frequency. --overwrite replaces
// the light curves of an earlier run, as it does files; without it they go on.
TEST(SkyProducts, LightCurvesHaveExactBinsAndAreReplaced) {
  const Scratch dir;
  ObservationConfig config = quiet(dir);
  config.image.light_curves = dir / "watch.sqlite";
  SkyMetadata metadata;
  metadata.sky = small_sky(8, 3);
  metadata.targets = parse_watch_list("sun");
  const auto run = [&] {
    SkyProducts products(config, observation(), metadata);
    products.write(raw_image(metadata.sky, 0, 400'000));
    products.finish();
    EXPECT_THAT(products.errors(), testing::IsEmpty());
  };
  run();
  run();
  EXPECT_EQ(test::LightCurveReader(dir / "watch.sqlite").n_images(), 2);
  config.output.overwrite = true;
  run();
  test::LightCurveReader reader(dir / "watch.sqlite");
  EXPECT_EQ(reader.n_images(), 1);
  const auto curve = reader.light_curve("Sun");
  ASSERT_EQ(curve.size(), 3U);
  EXPECT_EQ(curve[0].center_hz, 60e6 + 25e3);
  EXPECT_EQ(curve[1].center_hz, 60e6 + 4 * 25e3);
  EXPECT_EQ(curve[2].center_hz, 60e6 + 6.5 * 25e3);
  EXPECT_EQ(curve[2].width_hz, 50e3);
}

}  // namespace
}  // namespace ryle::pipeline
