// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/geometry.hpp"

#include <gtest/gtest.h>

#include "ryle/math/fft.hpp"
#include "tests/engine/image/all_sky_case_list.hpp"

namespace ryle::image {
namespace {

using namespace test;

TEST(AllSkyPlane, FindsTiltAndResidual) {
  auto c = random_array(50, 64, 2, 20);
  tilt(c, -0.0262, 0.0178, 0);
  auto plane = fit_plane(c);
  EXPECT_NEAR(plane.alpha, -0.0262, 1e-12);
  EXPECT_NEAR(plane.beta, 0.0178, 1e-12);
  EXPECT_NEAR(plane.z0_m, 3, 1e-10);
  EXPECT_LT(plane.residual_rms_m, 1e-10);
  // A flagged antenna on a mast does not matter.
  c.antenna_enu_m[7][2] += 40;
  c.inputs[14].bad = c.inputs[15].bad = true;
  plane = fit_plane(c);
  EXPECT_NEAR(plane.alpha, -0.0262, 1e-12);
  EXPECT_NEAR(plane.residual_m[7], 40, 1e-9);
}

TEST(AllSkyPlane, OneAntennaAndALineHaveNoSlopeAcross) {
  auto one = random_array(1, 64, 1, 10);
  one.antenna_enu_m[0] = {5, 6, 7};
  auto plane = fit_plane(one);
  EXPECT_EQ(plane.alpha, 0);
  EXPECT_EQ(plane.beta, 0);
  EXPECT_DOUBLE_EQ(plane.z0_m, 7);
  auto line = random_array(5, 64, 1, 10);
  for (std::size_t a = 0; a < 5; ++a)
    line.antenna_enu_m[a] = {3.0 * double(a), 4.0 * double(a), 0.5 * double(a)};
  plane = fit_plane(line);
  EXPECT_NEAR(plane.alpha, 0.5 * 3 / 25, 1e-12);
  EXPECT_NEAR(plane.beta, 0.5 * 4 / 25, 1e-12);
  EXPECT_LT(plane.residual_rms_m, 1e-12);
}

// Numbers of image.md 3, computed there by numpy's least squares.
TEST(AllSkyPlane, OfTheRealStations) {
  const auto sv = station_array("lwa/lwasv-ssmif-2022.txt", 60e6, 100);
  const auto na = station_array("lwa/lwana-ssmif-2024may.txt", 60e6, 100);
  if (!sv || !na) GTEST_SKIP() << "skipped: no data (lwa station files)";
  const auto plane = fit_plane(*sv);
  EXPECT_NEAR(plane.alpha, -0.0262, 5e-5);
  EXPECT_NEAR(plane.beta, 0.0178, 5e-5);
  EXPECT_NEAR(plane.residual_rms_m, 0.224, 1e-3);
  const double z_rad = 75 * kDegree_rad;
  EXPECT_NEAR(plane_coherence(plane, antennas_used(*sv), 60e6, z_rad), 0.979, 1e-3);
  EXPECT_NEAR(plane_coherence(plane, antennas_used(*sv), 88e6, z_rad), 0.954, 1e-3);
  EXPECT_NEAR(fit_plane(*na).residual_rms_m, 0.036, 1e-3);
}

TEST(AllSkyPixels, DirectionsInvertOnATiltedPlane) {
  auto c = random_array(3, 128, 1, 10);
  ArrayPlane plane;
  for (const double alpha : {0.0, -0.0262, 0.2}) {
    plane.alpha = alpha;
    plane.beta = -0.7 * alpha;
    const auto zenith = direction_of_pixel(c, plane, 64, 64);
    EXPECT_EQ(zenith[2], 1);
    for (double azimuth = 0; azimuth < 6.2; azimuth += 0.3) {
      for (const double zd : {0.001, 0.3, 0.8, 1.2, 1.5}) {
        const std::array<double, 3> s{std::sin(zd) * std::sin(azimuth),
                                      std::sin(zd) * std::cos(azimuth), std::cos(zd)};
        // From behind the plane a source looks like its mirror image in front of it.
        if (s[2] < 1e-3 + plane.alpha * s[0] + plane.beta * s[1]) continue;
        const auto [x, y] = pixel_of_direction(c, plane, s);
        const auto back = direction_of_pixel(c, plane, x, y);
        for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(back[k], s[k], 1e-12);
        // East is to the left, north up.
        if (alpha == 0) {
          EXPECT_NEAR(x, 64 - s[0] * 128 * 0.4, 1e-12);
          EXPECT_NEAR(y, 64 + s[1] * 128 * 0.4, 1e-12);
        }
      }
    }
  }
  plane.alpha = plane.beta = 0;
  EXPECT_TRUE(std::isnan(direction_of_pixel(c, plane, 0, 64)[2]));
  EXPECT_TRUE(std::isnan(direction_of_pixel(c, plane, 64 + 51.2 * 1.000001, 64)[2]));
  EXPECT_FALSE(std::isnan(direction_of_pixel(c, plane, 64 + 51.2 * 0.999999, 64)[2]));
}

TEST(AllSkyCells, LieWithinHalfTheSupport) {
  for (std::int64_t k = 3; k <= kMaxSupport; ++k) {
    AntennaFunction f;
    f.support = k;
    for (double p = -2.0; p < 3; p += 0.0625) {
      const auto cells = cells_around(f, p, 5 - p);
      EXPECT_LE(std::abs(double(cells.first_x) - p), 0.5 * double(k));
      EXPECT_LE(std::abs(double(cells.first_x + k - 1) - p), 0.5 * double(k));
      for (std::int64_t i = 0; i < k; ++i) {
        const double s = 2 * (double(cells.first_x + i) - p) / double(k);
        const double expected =
            std::abs(s) < 1 ? std::exp(2.3 * double(k) * (std::sqrt(1 - s * s) - 1)) : 0;
        EXPECT_NEAR(cells.weight_x[std::size_t(i)], expected, 1e-15);
      }
      for (std::int64_t i = k; i < kMaxSupport; ++i) EXPECT_EQ(cells.weight_x[std::size_t(i)], 0);
    }
  }
}

// Fault 9 of LWA_EPIC: a function of 0.8 cell whatever the support.
TEST(AllSkyCells, AWiderSupportIsAWiderFunction) {
  double before = 0;
  for (std::int64_t k = 3; k <= kMaxSupport; ++k) {
    AntennaFunction f;
    f.support = k;
    const auto cells = cells_around(f, 0.2, 0.2);
    double second_moment = 0, sum = 0;
    for (std::int64_t i = 0; i < k; ++i) {
      const double u = double(cells.first_x + i) - 0.2, w = cells.weight_x[std::size_t(i)];
      EXPECT_GT(w, 0) << k;
      second_moment += w * u * u;
      sum += w;
    }
    EXPECT_GT(second_moment / sum, before * 1.1) << k;
    before = second_moment / sum;
  }
}

TEST(AllSkyCells, AntennasStandWhereTheyAre) {
  auto c = random_array(4, 64, 1, 10);
  c.antenna_enu_m = {{-10, -30, 0}, {14, 6, 0}, {2.25, -12, 5}, {900, 900, 0}};
  c.inputs[3].bad = true;  // the outrigger does not move the middle
  const double cells_per_m = c.channels.center_hz(1) / (299792458.0 * 0.4);
  const auto p = antenna_positions_cells(c, 1);
  EXPECT_NEAR(p[2][0], 32 + 0.25 * cells_per_m, 1e-12);
  EXPECT_NEAR(p[2][1], 32, 1e-12);
  EXPECT_NEAR(p[1][0] - p[0][0], 24 * cells_per_m, 1e-12);
  EXPECT_NEAR(p[1][1] - p[0][1], -36 * cells_per_m, 1e-12);
  const auto extent = aperture_extent_cells(c);
  EXPECT_NEAR(extent[0], 24 * cells_per_m, 1e-12);
  EXPECT_NEAR(extent[1], 36 * cells_per_m, 1e-12);
}

// |FFT w_a|^2 the plain way.
std::vector<double> mean_power(const AllSkyConfig& c, std::int64_t channel, int pol) {
  const auto cells = antenna_cells(c, channel);
  const std::int64_t g = c.n_pixels, k = c.function.support;
  std::vector<double> mean(std::size_t(g * g));
  const auto used = antennas_used(c);
  double n = 0;
  for (std::size_t a = 0; a < cells.size(); ++a) {
    if (!used[a]) continue;
    n += 1;
    for (std::int64_t y = 0; y < g; ++y) {
      for (std::int64_t x = 0; x < g; ++x) {
        cf64 sum = 0;
        for (std::int64_t r = 0; r < k * k; ++r) {
          const cf64 w =
              c.function.apertures.empty()
                  ? cf64(cells[a].weight_y[std::size_t(r / k)] *
                         cells[a].weight_x[std::size_t(r % k)])
                  : aperture_weights(
                        c, channel)[a * std::size_t(n_pols(c)) + std::size_t(pol)][std::size_t(r)];
          sum += w * math::unit_root((cells[a].first_x + r % k) * (x - g / 2) +
                                         (cells[a].first_y + r / k) * (y - g / 2),
                                     g);
        }
        mean[std::size_t(y * g + x)] += std::norm(sum);
      }
    }
  }
  for (auto& v : mean) v /= n;
  return mean;
}

TEST(AllSkyTaper, IsTheMeanPowerPattern) {
  auto c = random_array(3, 16, 2, 8);
  c.inputs[2].bad = c.inputs[3].bad = true;
  c.function.support = 4;
  auto expected = mean_power(c, 1, 0);
  auto taper = correlated_taper(c, 1);
  ASSERT_EQ(taper.size(), expected.size());
  for (std::size_t p = 0; p < taper.size(); ++p) EXPECT_NEAR(taper[p], expected[p], 1e-12);
  give_apertures(c, 6);
  taper = correlated_taper(c, 1);
  ASSERT_EQ(taper.size(), 3 * expected.size());
  const auto xx = mean_power(c, 1, 0), yy = mean_power(c, 1, 1);
  for (std::size_t p = 0; p < xx.size(); ++p) {
    EXPECT_NEAR(taper[p], xx[p], 1e-12);
    EXPECT_NEAR(taper[xx.size() + p], yy[p], 1e-12);
    EXPECT_NEAR(taper[2 * xx.size() + p], std::sqrt(xx[p] * yy[p]), 1e-12);
  }
}

TEST(AllSkyTaper, DirectIsTheTransformOfTheFunction) {
  auto c = random_array(3, 24, 1, 8);
  for (const std::int64_t k : {3, 6, 9}) {
    c.function.support = k;
    const auto taper = direct_taper(c);
    for (const std::int64_t x : {0, 5, 12, 20}) {
      // Trapezoidal rule with many points; the slope at the edge is infinite, hence only 1e-6.
      double sum = 0;
      const int steps = 200000;
      for (int i = 0; i < steps; ++i) {
        const double u = double(k) * ((i + 0.5) / steps - 0.5);
        sum += es_function(c.function, u) * std::cos(2 * kPi * u * double(x - 12) / 24) *
               double(k) / steps;
      }
      EXPECT_NEAR(taper[std::size_t(12 * 24 + x)] / std::sqrt(taper[12 * 24 + 12]), sum, 1e-6);
    }
  }
}

TEST(AllSkyApertures, AreSampledWhereTheyLie) {
  auto c = random_array(1, 64, 1, 4);
  c.function.support = 7;
  c.function.correlated = true;
  const double cell_m = 0.4 * 299792458.0 / c.channels.center_hz(0);
  // One sample two cells to the north and one to the west of the antenna.
  Aperture a;
  a.n = 8;
  a.step_m = cell_m;
  a.values.assign(64, 0);
  a.values[(4 + 2) * 8 + (4 - 1)] = {0, 3};
  a.values[4 * 8 + 4] = 1e-9;
  c.function.apertures = {a};
  const auto cells = antenna_cells(c, 0);
  const auto w = aperture_weights(c, 0)[0];
  const auto p = antenna_positions_cells(c, 0)[0];
  double best = 0;
  std::int64_t at = 0;
  for (std::int64_t r = 0; r < 49; ++r) {
    if (std::abs(w[std::size_t(r)]) > best) at = r, best = std::abs(w[std::size_t(r)]);
  }
  EXPECT_NEAR(double(cells[0].first_x + at % 7) - p[0], -1, 1e-9);
  EXPECT_NEAR(double(cells[0].first_y + at / 7) - p[1], -2, 1e-9);
  EXPECT_NEAR(w[std::size_t(at)].real(), 1, 1e-8);  // unit sum
  c.function.apertures[0].values.assign(64, 0);
  c.function.apertures[0].values[0] = 1;
  EXPECT_THROW(aperture_weights(c, 0), ConfigError);
}

TEST(AllSkyGeometry, HeightIsALateArrival) {
  // Signals of a high antenna arrive early, phase +nu z/c at zenith; calibration takes it away.
  const cf64 phase = height_phase(299792458.0, 0.25);
  EXPECT_NEAR(phase.real(), 0, 1e-12);
  EXPECT_NEAR(phase.imag(), -1, 1e-12);
}

}  // namespace
}  // namespace ryle::image
