// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/plot/products.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "decoded.hpp"
#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"

namespace ryle {
namespace {

using plot::kNoData;
using plot::Rgb;
using plot::test::decode;
using plot::test::patch_of;

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
  write_visibility_matrix_picture(path_of("matrix.png"), small.dump, small.observation, true);
  const auto picture = decode(path_of("matrix.png"));
  // +90 degrees above the diagonal (row 0, 1; column 2, 3), -90 below it: four cells of 128 x 128
  // pixels each.
  const auto above = patch_of(picture, plot::color_at(ColorMap::twilight, 0.75));
  const auto below = patch_of(picture, plot::color_at(ColorMap::twilight, 0.25));
  EXPECT_NEAR(static_cast<double>(above.n), 4 * 128 * 128, 1500);
  EXPECT_NEAR(static_cast<double>(below.n), 4 * 128 * 128, 1500);
  EXPECT_NEAR(above.x - below.x, 128, 8);
  EXPECT_NEAR(below.y - above.y, 128, 8);
}

TEST(PictureProducts, WhatHasNoDataIsLeftEmpty) {
  Small small;
  for (std::int64_t c = 0; c < 4; ++c)
    small.dump.counts[small.at(c, 2, 3)] = 0;  // input 3 with itself
  write_visibility_matrix_picture(path_of("matrix.png"), small.dump, small.observation, true);
  // One cell of each of the two panels.
  EXPECT_NEAR(static_cast<double>(patch_of(decode(path_of("matrix.png")), kNoData).n),
              2 * 128 * 128, 1500);
  write_bandpass_picture(path_of("bandpass.png"),
                         std::vector<VisibilityDump>{small.dump, small.dump}, small.observation,
                         true);
  EXPECT_GT(decode(path_of("bandpass.png")).width, 1400) << "lines and their history";
}

// Power of an input by channel, in dB above the median of all.
TEST(PictureProducts, BandpassIsLinesInDecibels) {
  Small small;
  for (const std::int64_t p : {0, 3}) small.dump.data[small.at(2, 0, p)] = {100, 0};
  small.dump.counts[small.at(1, 2, 3)] = 0;
  const auto panels = bandpass_panels({{1, 1, 10, 1}}, 2, small.dump, small.observation);
  ASSERT_EQ(panels.size(), 2U);
  const Panel& lines = panels[0];
  EXPECT_EQ(lines.x_label, "frequency (MHz)");
  EXPECT_EQ(lines.x_min, 99.5);
  EXPECT_EQ(lines.x_max, 103.5);
  ASSERT_EQ(lines.series.size(), 4U);
  EXPECT_EQ(lines.series[0].name, "a X");
  EXPECT_EQ(lines.series[3].name, "b Y");
  EXPECT_EQ(lines.series[0].values, (std::vector<float>{0, 0, 20, 0}));
  EXPECT_TRUE(std::isnan(lines.series[3].values[1]));
  EXPECT_EQ(lines.series[3].values[2], 0);
  const Panel& waterfall = panels[1];
  EXPECT_EQ(waterfall.values, (std::vector<float>{0, 0, 10, 0}));
  EXPECT_EQ(waterfall.y_min, 2) << "seconds, downwards";
}

TEST(PictureProducts, ManyInputsAreMedianAndSpread) {
  Observation observation;
  observation.frequency = {100e6, 1e6, 2};
  VisibilityDump dump;
  dump.n_channels = 2;
  dump.n_baselines = n_pairs(11);
  dump.n_pol_products = 1;
  dump.interval_s = 1;
  dump.data.assign(static_cast<std::size_t>(2 * dump.n_baselines), {});
  dump.counts.assign(dump.data.size(), 1);
  for (std::int64_t a = 0; a < 11; ++a) {
    observation.array.antennas.push_back({"", {}});
    observation.array.inputs.push_back({a, 0});
    for (std::int64_t c = 0; c < 2; ++c)
      dump.data[static_cast<std::size_t>(dump.index(c, pair_index(a, a), 0))] = {
          static_cast<float>(std::pow(10.0, 0.1 * static_cast<double>(a - 5))), 0};
  }
  const auto panels = bandpass_panels({{1, 1}}, 1, dump, observation);
  ASSERT_EQ(panels.size(), 4U) << "lines, time, level of the inputs, spectra of the inputs";
  ASSERT_EQ(panels[0].series.size(), 1U);
  EXPECT_NEAR(panels[0].series[0].values[1], 0, 1e-5);
  EXPECT_NEAR(panels[0].series[0].low[1], -4, 1e-5);
  EXPECT_NEAR(panels[0].series[0].high[1], 4, 1e-5);
  EXPECT_EQ(panels[0].series[0].name, "median of 11 inputs, 10 to 90 %");
  EXPECT_NEAR(panels[2].series[0].values[10], 5, 1e-5);
  EXPECT_EQ(panels[3].n_rows, 11);
  write_bandpass_picture(path_of("many.png"), {{1, 1}}, 1, dump, observation, true);
  EXPECT_GT(decode(path_of("many.png")).width, 1400);
}

TEST(PictureProducts, RejectsWhatDoesNotFit) {
  Small small;
  EXPECT_THROW(
      write_bandpass_picture(path_of("x.png"), {{1, 2, 3}}, 1, small.dump, small.observation, true),
      ConfigError);
  EXPECT_THROW(write_bandpass_picture(path_of("x.png"), std::vector<VisibilityDump>{},
                                      small.observation, true),
               ConfigError);
  small.dump.data.pop_back();
  EXPECT_THROW(
      write_visibility_matrix_picture(path_of("x.png"), small.dump, small.observation, true),
      ConfigError);
  EXPECT_FALSE(std::filesystem::exists(path_of("x.png")));
}

}  // namespace
}  // namespace ryle
