// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/map/projection_formulas.hpp"

#include <gtest/gtest.h>
#include <wcslib/wcs.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "ryle/core/units.hpp"

namespace ryle {
namespace {

constexpr std::int64_t kWidth = 41, kHeight = 37;

class Wcs {
 public:
  Wcs(const std::string& code, double longitude_deg, double latitude_deg, double cell_deg,
      double turn_deg, bool swapped) {
    wcs_.flag = -1;
    wcsini(1, 2, &wcs_);
    const int x = swapped ? 1 : 0, y = 1 - x;
    std::snprintf(wcs_.ctype[x], 72, "RA---%s", code.c_str());
    std::snprintf(wcs_.ctype[y], 72, "DEC--%s", code.c_str());
    wcs_.crpix[x] = 19.25;
    wcs_.crpix[y] = 17.5;
    wcs_.cdelt[x] = -cell_deg;
    wcs_.cdelt[y] = 0.8 * cell_deg;
    wcs_.crval[x] = longitude_deg;
    wcs_.crval[y] = latitude_deg;
    const double c = std::cos(turn_deg * kDegree_rad), s = std::sin(turn_deg * kDegree_rad);
    wcs_.pc[0] = wcs_.pc[3] = c;
    wcs_.pc[2 * x + y] = -s;
    wcs_.pc[2 * y + x] = s;
  }
  ~Wcs() { wcsfree(&wcs_); }
  Wcs(const Wcs&) = delete;
  Wcs& operator=(const Wcs&) = delete;
  wcsprm& get() { return wcs_; }

 private:
  wcsprm wcs_{};
};

struct Difference {
  double largest_deg = 0;
  int n_both = 0, n_off = 0, n_one = 0;
};
// Angles between the formula and wcslib, pixel by pixel.
Difference compare(wcsprm& wcs) {
  Difference d;
  EXPECT_EQ(wcsset(&wcs), 0);
  const auto formula = formula_of(wcs);
  EXPECT_TRUE(formula.has_value());
  if (!formula) return d;
  std::vector<double> lon(kWidth * kHeight), lat(lon.size());
  formula_directions(*formula, kWidth, 0, kHeight, lon.data(), lat.data());
  for (std::int64_t k = 0; k < kWidth * kHeight; ++k) {
    double pixel[2], image[2], phi = 0, theta = 0, world[2];
    int status = 0;
    pixel[wcs.lng] = static_cast<double>(k % kWidth + 1);
    pixel[wcs.lat] = static_cast<double>(k / kWidth + 1);
    const bool on = wcsp2s(&wcs, 1, 2, pixel, image, &phi, &theta, world, &status) == 0;
    const auto i = static_cast<std::size_t>(k);
    d.n_one += on == std::isnan(lon[i]) ? 1 : 0;
    d.n_off += on ? 0 : 1;
    if (!on || std::isnan(lon[i])) continue;
    ++d.n_both;
    EXPECT_GE(lon[i], wcs.cel.euler[0] < 0 ? -360 : 0);
    EXPECT_LE(lon[i], wcs.cel.euler[0] < 0 ? 0 : 360);
    const double off = std::remainder(lon[i] - world[wcs.lng], 360);
    d.largest_deg = std::max({d.largest_deg, std::abs(lat[i] - world[wcs.lat]),
                              std::abs(off) * std::cos(world[wcs.lat] * kDegree_rad)});
  }
  return d;
}

// Everywhere on the sky, turned, with the axes in either order, from arcseconds to whole skies.
// Tolerance 1e-9 deg (grid.md 3); latitudes by arc sine lose digits near the poles in wcslib.
TEST(ProjectionFormulas, AreThoseOfWcslib) {
  struct Place {
    double lon, lat;
  };
  for (const std::string code : {"SIN", "TAN", "ZEA", "CAR", "SFL"})
    for (const Place p : {Place{0, 0}, {70.04, 36.29}, {359.99, -60}, {12, 89.9}, {200, -90}})
      for (const double cell_deg : {1e-3, 0.3, 4.0})
        for (const double turn_deg : {0.0, 35.0})
          for (const bool swapped : {false, true}) {
            SCOPED_TRACE(code + " at " + std::to_string(p.lat) + ", " + std::to_string(cell_deg));
            Wcs wcs(code, p.lon, p.lat, cell_deg, turn_deg, swapped);
            const Difference d = compare(wcs.get());
            EXPECT_LT(d.largest_deg, 1e-9);
            EXPECT_EQ(d.n_one, 0);
            EXPECT_GT(d.n_both, 200);
          }
}

TEST(ProjectionFormulas, PixelsOffTheProjectionAreNone) {
  for (const std::string code : {"SIN", "ZEA", "CAR", "SFL"}) {
    Wcs wcs(code, 120, 20, 9, 0, false);
    const Difference d = compare(wcs.get());
    EXPECT_EQ(d.n_one, 0) << code;
    EXPECT_GT(d.n_off, 100) << code;
    EXPECT_GT(d.n_both, 100) << code;
  }
}

TEST(ProjectionFormulas, AreOnlyUsedWhereTheyHold) {
  Wcs slant("SIN", 10, 20, 0.1, 0, false);
  slant.get().npv = 1;
  slant.get().pv[0] = {2, 1, 0.1};
  ASSERT_EQ(wcsset(&slant.get()), 0);
  EXPECT_FALSE(formula_of(slant.get()).has_value());
  Wcs other("AIT", 10, 20, 0.1, 0, false);
  ASSERT_EQ(wcsset(&other.get()), 0);
  EXPECT_FALSE(formula_of(other.get()).has_value());
}

TEST(ProjectionFormulas, TheNativePoleMayBeTurned) {
  for (const std::string code : {"SIN", "TAN", "ZEA"}) {
    Wcs wcs(code, -30, 40, 0.5, 0, false);
    wcs.get().lonpole = 150;
    const Difference d = compare(wcs.get());
    EXPECT_LT(d.largest_deg, 1e-9) << code;
    EXPECT_EQ(d.n_one, 0) << code;
  }
}

}  // namespace
}  // namespace ryle
