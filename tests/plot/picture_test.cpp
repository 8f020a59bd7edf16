// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/plot/picture.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

#include "decoded.hpp"
#include "ryle/core/error.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/plot/canvas.hpp"
#include "ryle/plot/color.hpp"
#include "ryle/plot/ticks.hpp"
#include "tests/io/scratch.hpp"

namespace ryle::plot {
namespace {

using test::decode;
using test::Patch;
using test::patch_of;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

class PictureFile : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        std::filesystem::path(testing::TempDir()) / (std::string("ryle_picture_") + info->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::filesystem::path folder_;
};

Panel two_by_two() {
  Panel panel;
  panel.square = true;
  panel.title = "title";
  panel.x_label = "x";
  panel.y_label = "y";
  panel.n_rows = panel.n_columns = 2;
  panel.values = {0.0F, 1.0F, 0.5F, kNaN};
  panel.color_min = 0;
  panel.color_max = 1;
  panel.color_map = ColorMap::gray;
  return panel;
}

TEST_F(PictureFile, EveryCellHasItsColorAndItsPlace) {
  write_picture(path("a.png"), {two_by_two()}, "caption", false);
  const auto picture = decode(path("a.png"));
  // 512 x 512 pixels for four cells; ticks, frame and bar touch a few of them.
  const Patch half = patch_of(picture, color_at(ColorMap::gray, 0.5));
  const Patch none = patch_of(picture, kNoData);
  EXPECT_NEAR(static_cast<double>(half.n), 256 * 256, 1500);
  EXPECT_NEAR(static_cast<double>(none.n), 256 * 256, 1500);
  EXPECT_NEAR(none.y, half.y, 8) << "one row";
  EXPECT_NEAR(none.x - half.x, 256, 8) << "columns to the right";
}

std::int64_t count_of(const std::string& text, const std::string& part) {
  std::int64_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// Text and lines are vectors, a heat map is an image however many cells it has.
TEST_F(PictureFile, VectorsHoldHeatMapsAsImages) {
  Panel panel = two_by_two();
  panel.n_rows = panel.n_columns = 1000;
  panel.values.assign(1000 * 1000, 0.5F);
  for (const std::string name : {"a.pdf", "b.SVG"}) {
    write_picture(path(name), {panel}, "caption", false);
    const std::string bytes = ryle::test::contents(path(name));
    EXPECT_LT(bytes.size(), 200'000U) << name;
    EXPECT_EQ(bytes.substr(0, 5), name == "a.pdf" ? "%PDF-" : "<?xml");
    EXPECT_EQ(count_of(bytes, name == "a.pdf" ? "/Subtype /Image" : "<image "), 2) << "map and bar";
    EXPECT_EQ(count_of(bytes, name == "a.pdf" ? "/FontFile2" : "CreationDate"),
              name == "a.pdf" ? 2 : 0)
        << "regular and bold";
  }
  write_picture(path("again.pdf"), {panel}, "caption", false);
  EXPECT_TRUE(ryle::test::contents(path("again.pdf")) == ryle::test::contents(path("a.pdf")));
}

TEST_F(PictureFile, TheFirstRowMayBeAtTheBottom) {
  Panel panel = two_by_two();
  panel.first_row_at_top = false;
  write_picture(path("a.png"), {two_by_two()}, "", false);
  write_picture(path("b.png"), {panel}, "", false);
  const Patch top = patch_of(decode(path("b.png")), kNoData),
              bottom = patch_of(decode(path("a.png")), kNoData);
  EXPECT_NEAR(bottom.y - top.y, 256, 8);
  EXPECT_NEAR(bottom.x, top.x, 8);
}

TEST_F(PictureFile, MarksStandAtTheirAxisValues) {
  Panel panel;
  panel.square = true;
  panel.n_rows = panel.n_columns = 64;
  panel.values.assign(64 * 64, 0.0F);
  panel.values[0] = 1.0F;
  panel.color_min = 0;
  panel.color_max = 1;
  panel.color_map = ColorMap::inferno;
  panel.x_min = 1;  // east to the left
  panel.x_max = -1;
  panel.y_min = -1;
  panel.y_max = 1;
  write_picture(path("none.png"), {panel}, "", false);
  panel.marks = {{0.5, 0.25, ""}, {7, 7, "outside"}};
  write_picture(path("mark.png"), {panel}, "", false);
  const auto before = decode(path("none.png")), after = decode(path("mark.png"));
  ASSERT_EQ(before.width, after.width);
  double x = 0, y = 0, n = 0;
  for (std::int64_t j = 0; j < after.height; ++j) {
    for (std::int64_t i = 0; i < after.width; ++i) {
      if (before.at(i, j) == after.at(i, j)) continue;
      x += static_cast<double>(i) + 0.5;
      y += static_cast<double>(j) + 0.5;
      ++n;
    }
  }
  ASSERT_GT(n, 50);
  // The heat map is the patch of the color of 0 (the mark covers little of it).
  const Patch map = patch_of(before, color_at(ColorMap::inferno, 0));
  EXPECT_NEAR(x / n, map.x + 0.5 - 0.25 * 512, 2);
  EXPECT_NEAR(y / n, map.y + 0.5 - 0.125 * 512, 2);
}

TEST_F(PictureFile, ValuesAreAveragedWhereCellsAreFinerThanPixels) {
  Panel panel;
  panel.n_rows = 1;
  panel.n_columns = 4096;
  for (int k = 0; k < 4096; ++k) panel.values.push_back(k % 2 == 0 ? 0.0F : 1.0F);
  panel.color_min = 0;
  panel.color_max = 1;
  panel.color_map = ColorMap::gray;
  write_picture(path("a.png"), {panel}, "", false);
  // 640 pixels for 4096 cells: six or seven cells under a pixel, mean 3/7 .. 4/7.
  const auto picture = decode(path("a.png"));
  std::int64_t n = 0;
  for (std::int64_t x = 0; x < picture.width; ++x) {
    const Rgb color = picture.at(x, 200);
    if (color.r == color.g && color.g == color.b && color.r >= 108 && color.r <= 147) ++n;
  }
  EXPECT_GT(n, 600);
}

TEST_F(PictureFile, PanelsStandSideBySideAndWrap) {
  write_picture(path("1.png"), {two_by_two()}, "", false);
  write_picture(path("3.png"), {two_by_two(), two_by_two(), two_by_two()}, "", false);
  write_picture(path("4.png"), {two_by_two(), two_by_two(), two_by_two(), two_by_two()}, "", false);
  const auto one = decode(path("1.png")), three = decode(path("3.png")),
             four = decode(path("4.png"));
  EXPECT_GT(three.width, 2.8 * static_cast<double>(one.width));
  EXPECT_EQ(three.height, one.height);
  EXPECT_LT(four.width, 2.1 * static_cast<double>(one.width));
  EXPECT_GT(four.height, 1.8 * static_cast<double>(one.height));
}

TEST_F(PictureFile, HorizonAndConstantAndEmptyPanelsAreDrawn) {
  Panel panel = two_by_two();
  panel.horizon_circle = true;
  panel.x_min = 1;
  panel.x_max = -1;
  panel.y_min = -1;
  Panel constant = two_by_two();
  constant.values = {3, 3, 3, 3};
  constant.color_max = 0;
  Panel empty = two_by_two();
  empty.values = {kNaN, kNaN, kNaN, kNaN};
  empty.color_max = 0;
  write_picture(path("a.png"), {panel, constant, empty}, "caption of three", false);
  EXPECT_GT(decode(path("a.png")).width, 1500);
}

TEST_F(PictureFile, IsPublishedWholeOrNotAtAll) {
  write_picture(path("a.png"), {two_by_two()}, "", false);
  EXPECT_TRUE(std::filesystem::exists(path("a.png")));
  EXPECT_FALSE(std::filesystem::exists(part_path(path("a.png"))));
  EXPECT_THROW(write_picture(path("a.png"), {two_by_two()}, "", false), IoError)
      << "there is one already";
  EXPECT_NO_THROW(write_picture(path("a.png"), {two_by_two()}, "", true));
  EXPECT_THROW(write_picture(path("none/a.png"), {two_by_two()}, "", false), IoError);
  Panel wrong = two_by_two();
  wrong.values.pop_back();
  EXPECT_THROW(write_picture(path("b.png"), {wrong}, "", false), ConfigError);
  EXPECT_THROW(write_picture(path("b.png"), {}, "", false), ConfigError);
  EXPECT_FALSE(std::filesystem::exists(path("b.png")));
}

TEST(PictureColor, MapsRunFromDarkToLightAndTwilightIsCyclic) {
  const auto lightness = [](Rgb c) { return 0.2126 * c.r + 0.7152 * c.g + 0.0722 * c.b; };
  for (const ColorMap map : {ColorMap::viridis, ColorMap::inferno, ColorMap::gray}) {
    double before = -1;
    for (int k = 0; k <= 100; ++k) {
      const double now = lightness(color_at(map, k / 100.0));
      EXPECT_GT(now, before - 0.6) << k;
      before = now;
    }
    EXPECT_GT(before, 180);
    EXPECT_EQ(color_at(map, -5), color_at(map, 0));
    EXPECT_EQ(color_at(map, 5), color_at(map, 1));
  }
  EXPECT_EQ(color_at(ColorMap::twilight, 0), color_at(ColorMap::twilight, 1));
  EXPECT_GT(lightness(color_at(ColorMap::twilight, 0)),
            3 * lightness(color_at(ColorMap::twilight, 0.5)));
}

TEST(PictureTicks, AreRoundAndInside) {
  const Ticks ticks = ticks_between(199.04, 200.32, 7);
  EXPECT_EQ(ticks.labels,
            (std::vector<std::string>{"199.2", "199.4", "199.6", "199.8", "200.0", "200.2"}));
  EXPECT_EQ(ticks_between(1, -1, 5).labels,
            (std::vector<std::string>{"\u22121.0", "\u22120.5", "0.0", "0.5", "1.0"}));
  EXPECT_EQ(ticks_between(-180, 180, 8, true).values,
            (std::vector<double>{-180, -135, -90, -45, 0, 45, 90, 135, 180}));
  const Ticks large = ticks_between(0, 3.2e9, 6);
  EXPECT_EQ(large.exponent, 9);
  EXPECT_EQ(large.labels.back(), "3");
  EXPECT_TRUE(ticks_between(1, 1, 6).values.empty());
  EXPECT_TRUE(ticks_between(0, std::numeric_limits<double>::quiet_NaN(), 6).values.empty());
}

TEST(PictureText, EveryPrintableLetterHasItsOwnShape) {
  std::set<std::vector<std::uint8_t>> shapes;
  std::string letters;
  for (char c = '!'; c <= '~'; ++c) letters += c;
  for (const char c : letters) {
    Canvas canvas(60, 60, {255, 255, 255});
    draw_text(canvas, std::string(1, c), {15, 40}, {28, {0, 0, 0}});
    EXPECT_TRUE(shapes.insert(canvas.rgb()).second) << "drawn like another letter: " << c;
  }
  Canvas unknown(60, 60, {255, 255, 255});
  draw_text(unknown, "\u2603", {15, 40}, {28, {0, 0, 0}});
  EXPECT_TRUE(shapes.insert(unknown.rgb()).second) << "a letter shows as the box of unknown ones";
}

// A path or the name of an object may hold any bytes.
TEST(PictureText, BytesThatAreNotUtf8AreQuestionMarks) {
  const TextStyle style;
  for (const char* text :
       {"a\xff", "a\xc3", "a\xc0\xaf", "a\xed\xa0\x80", "a\xbf\xbf", "a\xf8\x80\x80\x80"}) {
    Canvas canvas(60, 60, {255, 255, 255});
    draw_text(canvas, text, {15, 40}, style);
    EXPECT_NO_THROW(canvas.file()) << text;
  }
  EXPECT_EQ(text_width("a\xff", style), text_width("a?", style));
  EXPECT_NE(text_width("\u03bb", style), text_width("??", style));
}

TEST(PictureText, WrapsAtBlanks) {
  const TextStyle style;
  const auto lines = wrapped("alpha beta gamma delta", text_width("gamma delta", style) + 1, style);
  EXPECT_EQ(lines, (std::vector<std::string>{"alpha beta", "gamma delta"}));
  for (const auto& line : lines)
    EXPECT_LE(text_width(line, style), text_width("gamma delta", style) + 1);
}

}  // namespace
}  // namespace ryle::plot
