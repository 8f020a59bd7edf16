// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/product/picture_products.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "decoded.hpp"
#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"

namespace ryle {
namespace {

using picture::Rgb;
using picture::test::decode;
using picture::test::patch_of;

constexpr Rgb kNoData{234, 236, 239};

std::string path_of(const std::string& name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "ryle_picture_products";
  std::filesystem::create_directories(folder);
  return (folder / name).string();
}

// Two dual-pol antennas, four channels; V of (i, j, p) has phase +90 degrees for antenna 0
// against 1.
struct Small {
  Observation observation;
  VisibilityDump dump;
  Small() {
    observation.array.antennas = {{"a", {0, 0, 0}}, {"b", {10, 0, 0}}};
    observation.array.inputs = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
    observation.frequency = {100e6, 1e6, 4};
    dump.n_channels = 4;
    dump.n_baselines = 3;
    dump.n_pol_products = 4;
    dump.interval_s = 1;
    dump.data.assign(48, {0.01F, 0});
    dump.counts.assign(48, 10);
    for (std::int64_t c = 0; c < 4; ++c) {
      for (const std::int64_t b : {0, 2}) {
        for (const std::int64_t p : {0, 3}) dump.data[at(c, b, p)] = {1, 0};
      }
      for (std::int64_t p = 0; p < 4; ++p) dump.data[at(c, 1, p)] = {0, 0.1F};
    }
  }
  std::size_t at(std::int64_t c, std::int64_t b, std::int64_t p) const {
    return static_cast<std::size_t>(dump.index(c, b, p));
  }
};

TEST(PictureProducts, VisibilityMatrixIsHermitian) {
  const Small small;
  write_visibility_matrix_png(path_of("matrix.png"), small.dump, small.observation, true);
  const auto picture = decode(path_of("matrix.png"));
  // +90 degrees above the diagonal (row 0, 1; column 2, 3), -90 below it: four cells of 128 x 128
  // pixels each.
  const auto above = patch_of(picture, picture::color_at(ColorMap::twilight, 0.75));
  const auto below = patch_of(picture, picture::color_at(ColorMap::twilight, 0.25));
  EXPECT_NEAR(static_cast<double>(above.n), 4 * 128 * 128, 1500);
  EXPECT_NEAR(static_cast<double>(below.n), 4 * 128 * 128, 1500);
  EXPECT_NEAR(above.x - below.x, 128, 8);
  EXPECT_NEAR(below.y - above.y, 128, 8);
}

TEST(PictureProducts, WhatHasNoDataIsLeftEmpty) {
  Small small;
  for (std::int64_t c = 0; c < 4; ++c)
    small.dump.counts[small.at(c, 2, 3)] = 0;  // input 3 with itself
  write_visibility_matrix_png(path_of("matrix.png"), small.dump, small.observation, true);
  // One cell of each of the two panels.
  EXPECT_NEAR(static_cast<double>(patch_of(decode(path_of("matrix.png")), kNoData).n),
              2 * 128 * 128, 1500);
  write_bandpass_png(path_of("bandpass.png"), std::vector<VisibilityDump>{small.dump, small.dump},
                     small.observation, true);
  // A quarter of the panel of inputs (640 x 448).
  EXPECT_NEAR(static_cast<double>(patch_of(decode(path_of("bandpass.png")), kNoData).n), 640 * 112,
              1500);
}

TEST(PictureProducts, SkyHasEastToTheLeftAndNorthUp) {
  Observation observation;
  observation.frequency = {100e6, 1e6, 1};
  SkyImage image;
  image.n_pixels = 32;
  image.cell_direction_cosine = 2.0 / 32;
  image.pixels.assign(32 * 32, 0.0F);
  for (int y = 0; y < 32; ++y) {
    for (int x = 0; x < 32; ++x) {
      const double l = -(x - 16) / 16.0, m = (y - 16) / 16.0;
      if (l * l + m * m >= 1)
        image.pixels[static_cast<std::size_t>(y * 32 + x)] =
            std::numeric_limits<float>::quiet_NaN();
    }
  }
  image.pixels[24 * 32 + 12] = 1;  // l = +0.25 east, m = +0.5 north
  write_sky_png(path_of("sky.png"), image, {}, observation, true);
  const auto picture = decode(path_of("sky.png"));
  const auto source = patch_of(picture, picture::color_at(ColorMap::inferno, 1));
  const auto ground = patch_of(picture, picture::color_at(ColorMap::inferno, 0));
  ASSERT_GT(source.n, 100);
  // 512 pixels for two direction cosines; the color bar shifts neither by more than a pixel or two.
  EXPECT_NEAR(source.x - ground.x, -0.25 * 256, 20) << "east is to the left";
  EXPECT_NEAR(source.y - ground.y, -0.5 * 256, 20) << "north is up";
  write_sky_png(path_of("sky.png"), image, {{0.25, 0.5, "source"}}, observation, true);
  EXPECT_LT(patch_of(decode(path_of("sky.png")), picture::color_at(ColorMap::inferno, 1)).n,
            source.n + 40)
      << "the mark lies on the source, its middle stays free";
}

TEST(PictureProducts, RefusesWhatDoesNotFit) {
  Small small;
  EXPECT_THROW(
      write_bandpass_png(path_of("x.png"), {{1, 2, 3}}, 1, small.dump, small.observation, true),
      ConfigError);
  EXPECT_THROW(
      write_bandpass_png(path_of("x.png"), std::vector<VisibilityDump>{}, small.observation, true),
      ConfigError);
  small.dump.data.pop_back();
  EXPECT_THROW(write_visibility_matrix_png(path_of("x.png"), small.dump, small.observation, true),
               ConfigError);
  EXPECT_THROW(write_sky_png(path_of("x.png"), SkyImage{}, {}, small.observation, true),
               ConfigError);
  EXPECT_FALSE(std::filesystem::exists(path_of("x.png")));
}

}  // namespace
}  // namespace ryle
