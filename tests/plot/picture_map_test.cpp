// SPDX-License-Identifier: BSD-3-Clause
// Geometry of pictures of maps: shape of cells, coordinates at their ticks, beam, scale.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/pipeline/grid/sky_cells.hpp"
#include "ryle/plot/canvas.hpp"
#include "ryle/plot/color.hpp"
#include "ryle/plot/graticule.hpp"
#include "ryle/plot/panel.hpp"
#include "tests/plot/decoded.hpp"

namespace ryle::plot {
namespace {

MapProjection map_of(const std::string& projection, double longitude_deg, double latitude_deg,
                     double cell_deg, std::int64_t width, std::int64_t height,
                     SkyFrame frame = SkyFrame::icrs) {
  return MapProjection::make(
      {projection, frame, longitude_deg, latitude_deg, cell_deg, width, height});
}

Panel panel_of(const MapProjection& map, const MapMetadata& metadata = {}) {
  std::vector<float> plane(static_cast<std::size_t>(map.width() * map.height()));
  for (std::size_t k = 0; k < plane.size(); ++k) plane[k] = static_cast<float>(k % 97);
  return map_cells(map)->picture(plane, metadata);
}

// Pixels of the picture along a step of one cell in x and in y.
std::array<double, 2> cell_px(const Panel& panel) {
  const PanelDrawing drawing(panel);
  const Point a = drawing.place(0, 0), b = drawing.place(1, 1);
  return {b.x - a.x, a.y - b.y};
}

TEST(PictureMap, CellsKeepTheirShape) {
  // M33 as FAST's drift scans cover it, a long scan, a tall map, a large one.
  for (const auto& [width, height] :
       {std::pair{120, 200}, std::pair{700, 20}, std::pair{40, 330}, std::pair{3000, 2000}}) {
    const auto [x, y] = cell_px(panel_of(map_of("SIN", 23.46, 30.66, 0.01, width, height)));
    EXPECT_NEAR(y / x, 1, 0.01) << width << " x " << height;
  }
}

TEST(PictureMap, CellsThatAreNotSquareAreNotDrawnSquare) {
  for (const bool matrix : {false, true}) {
    std::vector<std::string> cards = {"CTYPE1  = 'RA---TAN'", "CTYPE2  = 'DEC--TAN'",
                                      "CRVAL1  = 10",         "CRVAL2  = 20",
                                      "CRPIX1  = 50",         "CRPIX2  = 50"};
    const std::vector<std::string> steps =
        matrix ? std::vector<std::string>{"CD1_1   = -0.01", "CD1_2   = 0.0", "CD2_1   = 0.0",
                                          "CD2_2   = 0.02"}
               : std::vector<std::string>{"CDELT1  = -0.01", "CDELT2  = 0.02"};
    cards.insert(cards.end(), steps.begin(), steps.end());
    const MapProjection map = MapProjection::from_cards(cards, 100, 100);
    EXPECT_NEAR(map.cell_deg(), 0.02, 1e-12);
    EXPECT_NEAR(map.cell_aspect(), 2, 1e-12);
    const auto [x, y] = cell_px(panel_of(map));
    EXPECT_NEAR(y / x, 2, 0.02);
  }
}

TEST(PictureMap, TicksStandAtTheirCoordinates) {
  const MapProjection map = map_of("SIN", 23.46, 30.66, 1.0 / 60, 180, 180);
  const Panel panel = panel_of(map);
  EXPECT_EQ(panel.x_label, "right ascension (ICRS)");
  std::vector<std::string> labels;
  std::vector<double> lon(180), lat(180);
  map.directions(0, 1, lon.data(), lat.data());
  for (const auto& tick : panel.x_ticks) {
    labels.push_back(tick.label);
    const auto x = static_cast<std::size_t>(std::clamp(std::llround(tick.at), 0LL, 179LL));
    int hours = 0, minutes = 0;
    ASSERT_EQ(std::sscanf(tick.label.c_str(), "%dh%dm", &hours, &minutes), 2) << tick.label;
    // Half a cell beside the row's middle and half a row below it.
    EXPECT_NEAR(lon[x], 15 * (hours + minutes / 60.0), 0.02) << tick.label;
  }
  EXPECT_THAT(labels, testing::UnorderedElementsAre("1h28m", "1h30m", "1h32m", "1h34m", "1h36m",
                                                    "1h38m", "1h40m"))
      << "east is to the left";
  EXPECT_LT(panel.x_ticks.back().at, panel.x_ticks.front().at);
  labels.clear();
  for (const auto& tick : panel.y_ticks) {
    labels.push_back(tick.label);
    map.directions(std::clamp(std::llround(tick.at), 0LL, 179LL), 1, lon.data(), lat.data());
    EXPECT_EQ(degrees_text(std::round(lat[0] * 2) / 2, 0.5, true), tick.label) << lat[0];
    EXPECT_NEAR(lat[0], std::round(lat[0] * 2) / 2, 0.02);
  }
  EXPECT_THAT(labels, testing::ElementsAre("+29\u00b030'", "+30\u00b000'", "+30\u00b030'",
                                           "+31\u00b000'", "+31\u00b030'", "+32\u00b000'"));
}

// Lines reach the edges of the outer pixels, which on a map of few pixels lie far from their
// middles.
TEST(PictureMap, MapsOfFewPixelsHaveTicksToo) {
  for (const auto& [width, height] : {std::pair{2, 2}, std::pair{2, 28}, std::pair{22, 22}}) {
    const Panel panel = panel_of(map_of("SIN", 281, -1.9, 0.02, width, height));
    EXPECT_GE(panel.x_ticks.size(), 1U) << width << " x " << height;
    EXPECT_GE(panel.y_ticks.size(), 2U) << width << " x " << height;
    EXPECT_TRUE(panel.inner_labels.empty()) << width << " x " << height;
  }
}

// A parallel near the pole is a curve: its middle lies lower than the chord of its ends.
TEST(PictureMap, ParallelsCurveWhereTheProjectionDoes) {
  const MapProjection map = map_of("SIN", 100, 75, 0.1, 200, 200);
  const Panel panel = panel_of(map);
  bool curved = false;
  for (const auto& curve : panel.graticule) {
    const auto &a = curve.front(), &b = curve.back(), &middle = curve[curve.size() / 2];
    if (std::abs(a.y - b.y) < 5 && std::abs(a.x - b.x) > 100)
      curved = curved || middle.y < 0.5 * (a.y + b.y) - 5;
  }
  EXPECT_TRUE(curved);
}

TEST(PictureMap, MeridiansRoundAPoleAreLabelledWithin) {
  const Panel panel = panel_of(map_of("ZEA", 0, 90, 0.2, 200, 200));
  std::vector<std::string> labels;
  for (const auto& label : panel.inner_labels) labels.push_back(label.label);
  for (const auto& tick : panel.x_ticks) labels.push_back(tick.label);
  for (const char* hours : {"0h", "6h", "12h", "18h"})
    EXPECT_THAT(labels, testing::Contains(hours));
}

TEST(PictureMap, TheWholeSkyHasAnOutline) {
  const MapProjection map =
      map_of("MOL", 0, 0, 4 * std::sqrt(2.0) / kDegree_rad / 800, 800, 400, SkyFrame::galactic);
  const Panel panel = panel_of(map);
  ASSERT_GT(panel.outline.size(), 100U);
  EXPECT_THAT(panel.x_label, testing::HasSubstr("galactic longitude"));
  std::vector<std::string> labels;
  for (const auto& label : panel.inner_labels) labels.push_back(label.label);
  EXPECT_THAT(labels, testing::UnorderedElementsAre("240\u00b0", "300\u00b0", "0\u00b0", "60\u00b0",
                                                    "120\u00b0"));
  labels.clear();
  for (const auto& label : panel.outer_labels) labels.push_back(label.label);
  EXPECT_THAT(labels, testing::ElementsAre("\u221260\u00b0", "\u221230\u00b0", "0\u00b0",
                                           "+30\u00b0", "+60\u00b0"));
  const auto [x, y] = cell_px(panel);
  EXPECT_NEAR(y / x, 1, 0.01);
  const PanelDrawing drawing(panel);
  Canvas canvas(drawing.width(), drawing.height(), kPaper);
  drawing.draw(canvas, 0, 0);
  const test::Decoded drawn{canvas.width(), canvas.height(), canvas.rgb()};
  const auto color = [&](double px, double py) {
    const Point p = drawing.place(px, py);
    return drawn.at(std::llround(p.x), std::llround(p.y));
  };
  EXPECT_EQ(color(8, 8), kPaper) << "a corner is outside of the sky";
  EXPECT_FALSE(color(408, 209) == kPaper);
}

TEST(PictureMap, LongitudesAreTextOfTheirStep) {
  EXPECT_EQ(hours_text(23.5, 0.25), "1h34m");
  EXPECT_EQ(hours_text(30, 15), "2h");
  EXPECT_EQ(hours_text(23.5 + 5.0 / 240, 5.0 / 240), "1h34m05s");
  EXPECT_EQ(hours_text(15.0 / 3600 * 0.25, 15.0 / 3600 * 0.05), "0h00m00.25s");
  EXPECT_EQ(degrees_text(-0.5, 0.5, true), "\u22120\u00b030'");
  EXPECT_EQ(degrees_text(0, 10, true), "0\u00b0");
  EXPECT_EQ(degrees_text(59.99999999, 1.0 / 60, true), "+60\u00b000'") << "never 59 deg 60'";
  EXPECT_EQ(graticule_step_deg(3.1, 6, false), 0.5);
  EXPECT_NEAR(graticule_step_deg(3.5, 5, true), 15 * 5 / 60.0, 1e-12);
  EXPECT_EQ(graticule_step_deg(360, 12, true), 30);
  EXPECT_NEAR(graticule_step_deg(0.001 / 3600, 5, false), 0.0002 / 3600, 1e-15);
}

TEST(PictureMap, TheBeamIsToScaleAndTurned) {
  const MapProjection map = map_of("SIN", 150, 40, 0.01, 200, 200);
  MapMetadata metadata;
  metadata.beam_fwhm_deg = 0.2;
  metadata.beam_minor_deg = 0.1;
  metadata.beam_position_angle_deg = 30;
  const Panel panel = panel_of(map, metadata);
  double longest = 0, shortest = 1e9;
  Panel::Point end;
  for (const auto& p : panel.beam) {
    const double r = std::hypot(p.x, p.y);
    shortest = std::min(shortest, r);
    if (r > longest) longest = r, end = p;
  }
  EXPECT_NEAR(longest, 10, 0.05);
  EXPECT_NEAR(shortest, 5, 0.05);
  // North through east, which is to the left.
  EXPECT_NEAR(std::remainder(std::atan2(-end.x, end.y) / kDegree_rad - 30, 180), 0, 0.5);
}

TEST(PictureMap, TheScaleSaysWhatIsDrawn) {
  Panel panel;
  panel.n_rows = 10;
  panel.n_columns = 100;
  for (int k = 0; k < 1000; ++k) panel.values.push_back(static_cast<float>(k));
  panel.color_min = 0;
  panel.color_max = 999;
  const ColorBar whole = PanelDrawing(panel).color_bar();
  EXPECT_EQ(whole.low, 0);
  EXPECT_EQ(whole.high, 999);
  EXPECT_FALSE(whole.clipped_low || whole.clipped_high) << "nothing lies beyond the ends";
  panel.color_min = panel.color_max = 0;
  const ColorBar part = PanelDrawing(panel).color_bar();
  EXPECT_NEAR(part.low, 10, 1);
  EXPECT_NEAR(part.high, 994, 1);
  EXPECT_TRUE(part.clipped_low && part.clipped_high) << "points tell of values beyond the ends";
}

TEST(PictureChart, LinesRunThroughTheirValues) {
  Panel panel;
  panel.n_columns = 4;
  panel.x_min = 100;
  panel.x_max = 104;
  panel.y_max = panel.y_min;
  panel.series = {{"", {-3, 0, 3, 0}}, {"", {1, 1, kNaN, 1}}};
  const PanelDrawing drawing(panel);
  Canvas canvas(drawing.width(), drawing.height(), kPaper);
  drawing.draw(canvas, 0, 0);
  const test::Decoded drawn{canvas.width(), canvas.height(), canvas.rgb()};
  const Rgb first{0, 114, 178}, second{213, 94, 0};
  // Within a pixel of the place.
  const auto runs_through = [&](Rgb color, double x, double y) {
    const Point p = drawing.place(x, y);
    for (std::int64_t i = -1; i <= 1; ++i)
      for (std::int64_t j = -1; j <= 1; ++j)
        if (drawn.at(static_cast<std::int64_t>(p.x) + i, static_cast<std::int64_t>(p.y) + j) ==
            color)
          return true;
    return false;
  };
  EXPECT_TRUE(runs_through(first, 101.5, 0)) << "the second value, 0";
  EXPECT_TRUE(runs_through(first, 101, -1.5)) << "halfway between the first and the second";
  EXPECT_TRUE(runs_through(first, 102, 1.5));
  EXPECT_TRUE(runs_through(second, 101, 1));
  EXPECT_FALSE(runs_through(second, 102.7, 1)) << "a value that is not there breaks the line";
  panel.series[0].values.pop_back();
  EXPECT_THROW(PanelDrawing{panel}, ConfigError);
}

TEST(PictureFileName, OtherEndingsAreRejected) {
  EXPECT_NO_THROW(require_picture("", "--png"));
  EXPECT_NO_THROW(require_picture("a.png", "--png"));
  EXPECT_NO_THROW(require_picture("b/a.PNG", "--png"));
  EXPECT_NO_THROW(require_picture("a.pdf", "--png"));
  EXPECT_NO_THROW(require_picture("a.svg", "--png"));
  for (const char* name : {"a.jpg", "a", "a.png/b", "a.png.gz", ".png"}) {
    try {
      require_picture(name, "--png");
      FAIL() << name;
    } catch (const ConfigError& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr("--png")) << name;
      EXPECT_THAT(e.what(), testing::HasSubstr(".png would do")) << name;
    }
  }
}

}  // namespace
}  // namespace ryle::plot
