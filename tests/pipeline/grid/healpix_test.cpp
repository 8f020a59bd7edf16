// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/map/healpix.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "tests/pipeline/grid/healpix_golden.hpp"

namespace ryle::healpix {
namespace {

using Vec3 = std::array<double, 3>;

Vec3 direction(double longitude_deg, double latitude_deg) {
  const double lon = longitude_deg * kDegree_rad, lat = latitude_deg * kDegree_rad;
  return {std::cos(lat) * std::cos(lon), std::cos(lat) * std::sin(lon), std::sin(lat)};
}
double angle_rad(const Vec3& a, const Vec3& b) {
  return 2 * std::asin(std::min(1.0, 0.5 * std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2])));
}

TEST(Healpix, PixelsAreThoseOfHealpy) {
  for (const auto& g : kGoldenPixels) {
    EXPECT_EQ(ring_of_nest(g.order, g.nest), g.ring) << g.order;
    EXPECT_EQ(nest_of(g.order, g.x, g.y, g.z), g.nest) << g.order;
    // healpy's own sines near the poles lose digits; 1e-15 is a few roundings.
    const Vec3 c = center_of_nest(g.order, g.nest);
    EXPECT_LT(std::hypot(c[0] - g.x, c[1] - g.y, c[2] - g.z), 1e-15) << g.order << ' ' << g.nest;
  }
  for (const auto& g : kGoldenDirections) {
    const Vec3 v = direction(g.longitude_deg, g.latitude_deg);
    EXPECT_EQ(nest_of(g.order, v[0], v[1], v[2]), g.nest)
        << g.order << ' ' << g.longitude_deg << ' ' << g.latitude_deg;
  }
}

TEST(Healpix, EveryPixelHasItsPlaceInTheRings) {
  for (int order = 0; order <= 5; ++order) {
    std::vector<bool> met(static_cast<std::size_t>(n_pixels(order)));
    std::vector<double> heights(met.size());
    for (std::int64_t nest = 0; nest < n_pixels(order); ++nest) {
      const std::int64_t ring = ring_of_nest(order, nest);
      ASSERT_FALSE(met.at(static_cast<std::size_t>(ring))) << order << ' ' << ring;
      met[static_cast<std::size_t>(ring)] = true;
      const Vec3 c = center_of_nest(order, nest);
      ASSERT_NEAR(std::hypot(c[0], c[1], c[2]), 1, 1e-15);
      ASSERT_EQ(nest_of(order, c[0], c[1], c[2]), nest) << order;
      heights[static_cast<std::size_t>(ring)] = c[2];
    }
    for (std::size_t k = 1; k < heights.size(); ++k)
      ASSERT_LE(heights[k], heights[k - 1] + 1e-15) << "rings go from north to south";
  }
}

TEST(Healpix, NoDirectionIsFarFromItsPixel) {
  std::vector<Vec3> directions = {{0, 0, 1}, {0, 0, -1}};
  // Corners of the base pixels, and around them, on both sides of every seam.
  const double border_deg = std::asin(2.0 / 3) / kDegree_rad;
  for (const double lat : {0.0, border_deg, -border_deg, 89.9999999, -89.9999999})
    for (double lon = 0; lon <= 360; lon += 45)
      for (const double step : {0.0, 1e-12, 1e-6, 1e-3})
        for (const double sign : {-1.0, 1.0})
          directions.push_back(direction(lon + sign * step, lat - sign * step / 2));
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (int k = 0; k < 5'000; ++k) {
    const Vec3 v{normal(random), normal(random), normal(random)};
    const double length = std::hypot(v[0], v[1], v[2]);
    directions.push_back({v[0] / length, v[1] / length, v[2] / length});
  }
  for (const int order : {0, 1, 4, 12, 29}) {
    double farthest = 0;
    for (const Vec3& v : directions) {
      const std::int64_t p = nest_of(order, v[0], v[1], v[2]);
      ASSERT_TRUE(p >= 0 && p < n_pixels(order));
      farthest = std::max(farthest, angle_rad(v, center_of_nest(order, p)));
    }
    // At the finest order rounding of the unit vectors is 1e-16 of 2e-9 rad.
    EXPECT_LE(farthest, largest_radius_rad(order) * (1 + 1e-6)) << order;
    EXPECT_GT(farthest, 0.9 * largest_radius_rad(order)) << order;
  }
  EXPECT_NEAR(largest_radius_rad(5), 0.033206666811769106, 1e-15);  // healpy
}

TEST(Healpix, ParentsHoldTheirPixels) {
  for (int order = 1; order < kMaxOrder; ++order) {
    const Vec3 v = direction(211.3, -54.7);
    EXPECT_EQ(nest_of(order + 1, v[0], v[1], v[2]) / 4, nest_of(order, v[0], v[1], v[2]));
  }
}

TEST(Healpix, CoveredPixelsAreThoseWithinReachOfASample) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> u(-1, 1);
  for (const auto& [lon, lat, spread_deg, reach_deg] :
       {std::array{0.0, 0.0, 3.0, 2.0}, std::array{0.0, 90.0, 4.0, 1.0},
        std::array{359.9, -60.0, 5.0, 0.3}, std::array{45.0, 41.81, 1.0, 6.0},
        std::array{120.0, -90.0, 0.0, 1.5}, std::array{10.0, 20.0, 1.0, 120.0}}) {
    std::vector<double> x, y, z;
    for (int k = 0; k < 40; ++k) {
      const Vec3 v = direction(lon + spread_deg * u(random),
                               std::clamp(lat + spread_deg * u(random), -90.0, 90.0));
      x.push_back(v[0]), y.push_back(v[1]), z.push_back(v[2]);
    }
    x.push_back(kNaN), y.push_back(kNaN), z.push_back(kNaN);
    const int order = 5;
    const double reach = reach_deg * kDegree_rad;
    const auto ranges =
        covered(order, reach, static_cast<std::int64_t>(x.size()), x.data(), y.data(), z.data());
    std::set<std::int64_t> got;
    std::int64_t end = -1;
    for (const Range& r : ranges) {
      EXPECT_GT(r.first, end) << "ascending, and joined where they touch";
      end = r.last;
      for (std::int64_t p = r.first; p < r.last; ++p) got.insert(p);
    }
    std::set<std::int64_t> want;
    for (std::int64_t p = 0; p < n_pixels(order); ++p) {
      const Vec3 c = center_of_nest(order, p);
      for (std::size_t k = 0; k + 1 < x.size(); ++k)
        if (c[0] * x[k] + c[1] * y[k] + c[2] * z[k] > std::cos(reach)) want.insert(p);
    }
    EXPECT_EQ(got, want) << lon << ' ' << lat;
  }
}

TEST(Healpix, OnlyPowersOfTwoAreSides) {
  EXPECT_EQ(order_of(1), 0);
  EXPECT_EQ(order_of(2048), 11);
  for (const std::int64_t nside :
       {std::int64_t{0}, std::int64_t{-4}, std::int64_t{3}, std::int64_t{1} << 30})
    EXPECT_THROW(order_of(nside), ConfigError) << nside;
}

}  // namespace
}  // namespace ryle::healpix
