// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/sky_visibilities.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"

namespace ryle {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr int kLinear[] = {0, 1, 2, 3};
constexpr int kXx[] = {0};

ArrayLayout random_array(std::int64_t n) {
  ArrayLayout array;
  array.latitude_rad = -26.7033 * kDegree_rad;
  array.longitude_rad = 116.6708 * kDegree_rad;
  array.height_m = 377;
  std::mt19937 generator(5);
  std::normal_distribution<double> place(0, 40);
  for (std::int64_t a = 0; a < n; ++a) {
    array.antennas.push_back(
        {"A" + std::to_string(a), {place(generator), place(generator), 0.05 * place(generator)}});
    for (int pol = 0; pol < 2; ++pol)
      array.inputs.push_back({.antenna = a, .pol = pol, .feed_angle_rad = kPi / 2});
  }
  return array;
}

const std::int64_t kNoon = tai_ns_from_utc_iso("2019-11-04T03:35:37");

TEST(ElementBeam, DipoleOverGround) {
  const ElementBeam beam = ElementBeam::dipole(0.4, kPi / 2);  // X lies east-west
  const auto zenith = beam.coherency({0, 0, 1}, 150e6);
  EXPECT_NEAR(zenith[0].real(), 1, 1e-12);
  EXPECT_NEAR(zenith[3].real(), 1, 1e-12);
  EXPECT_NEAR(std::abs(zenith[1]), 0, 1e-12);
  // Toward the east at 60 degrees from the zenith: X foreshortens by n^2, Y does not.
  const double n = 0.5;
  const double field = std::sin(2 * kPi * 0.4 * n * 150e6 / kSpeedOfLight_m_per_s) /
                       std::sin(2 * kPi * 0.4 * 150e6 / kSpeedOfLight_m_per_s);
  const auto east = beam.coherency({std::sqrt(0.75), 0, n}, 150e6);
  EXPECT_NEAR(east[0].real(), field * field * n * n, 1e-12);
  EXPECT_NEAR(east[3].real(), field * field, 1e-12);
  EXPECT_NEAR(std::abs(east[1]), 0, 1e-12);
  // Between the axes the two are alike and correlated: e . x = e . y = 0.5 there.
  const auto between = beam.coherency({0.5, -0.5, std::sqrt(0.5)}, 150e6);
  EXPECT_NEAR(between[0].real(), between[3].real(), 1e-12);
  EXPECT_NEAR(between[1].real() / between[0].real(), -0.25 / 0.75, 1e-9);
  EXPECT_EQ(beam.coherency({0.6, 0, -0.8}, 150e6)[0], cf64{});
  EXPECT_THROW(ElementBeam::dipole(1.0, 0).coherency({0, 0, 1}, 149.9e6), ConfigError);
  EXPECT_NEAR(ElementBeam::power(2).coherency({0.6, 0, 0.8}, 1e8)[3].real(), 0.64, 1e-12);
  EXPECT_EQ(ElementBeam::named("dipole 0.4", 0).name(), "dipole 0.4 m above ground");
  EXPECT_THROW(ElementBeam::named("cosine", 0), ConfigError);
}

TEST(ElementBeam, TableOfADipoleIsTheDipole) {
  ElementBeamTable table;
  for (int f = 0; f < 3; ++f) table.frequencies_hz.push_back(140e6 + f * 10e6);
  for (int z = 0; z <= 180; ++z) table.zenith_rad.push_back(z * 0.5 * kDegree_rad);
  for (int a = 0; a < 360; ++a) table.azimuth_rad.push_back(a * kDegree_rad);
  for (const double hz : table.frequencies_hz) {
    for (const double z : table.zenith_rad) {
      for (const double a : table.azimuth_rad) {
        const double k = 2 * kPi * 0.4 * hz / kSpeedOfLight_m_per_s;
        const double field = std::sin(k * std::cos(z)) / std::sin(k);
        // theta points down from the zenith, phi toward growing azimuth (east of north).
        table.values.push_back(field * std::sin(a) * std::cos(z));  // X east: e . theta
        table.values.push_back(field * std::cos(a));                // e . phi
        table.values.push_back(-field * std::cos(a) * std::cos(z));
        table.values.push_back(field * std::sin(a));
      }
    }
  }
  const ElementBeam tabulated = ElementBeam::table(table, "test");
  const ElementBeam dipole = ElementBeam::dipole(0.4, kPi / 2);
  for (const Vector3 s : {Vector3{0.3, 0.4, std::sqrt(0.75)}, Vector3{-0.7, 0.1, std::sqrt(0.5)},
                          Vector3{0.02, -0.01, std::sqrt(1 - 0.0005)}}) {
    const auto a = tabulated.coherency(s, 147e6);
    const auto b = dipole.coherency(s, 147e6);
    EXPECT_NEAR(a[0].real(), b[0].real(), 5e-4);
    EXPECT_NEAR(a[3].real(), b[3].real(), 5e-4);
    EXPECT_NEAR(std::abs(a[1]), std::abs(b[1]), 5e-4);
  }
  EXPECT_THROW(tabulated.coherency({0, 0, 1}, 180e6), ConfigError);
  table.values.pop_back();
  EXPECT_THROW(ElementBeam::table(table, "test"), ConfigError);
}

TEST(SkyVisibilities, TheFastSumIsTheEquation) {
  const ArrayLayout array = random_array(23);
  SkyModel sky = sky_model_named("sun");
  for (int k = 0; k < 6; ++k) {
    SkySource source;
    source.name = "S" + std::to_string(k);
    Vector3 enu{0.3 * std::cos(k), 0.25 * std::sin(2.0 * k), 0};
    enu[2] = std::sqrt(1 - enu[0] * enu[0] - enu[1] * enu[1]);
    source.fixed = direction_of_enu(array, enu, kNoon);
    FluxLaw law;
    law.coefficients = {0.5 * k, -0.7};
    law.sign = k == 2 ? -1 : 1;
    law.max_hz = 1e12;
    source.laws = {law};
    if (k % 2 == 1) {
      source.major_rad = 0.02;
      source.minor_rad = 0.005;
      source.angle_rad = 0.4 * k;
    }
    sky.sources.push_back(source);
  }
  const std::vector<double> frequencies{100e6, 150e6, 151e6};
  const auto seen = apparent_sky(sky, array, kNoon, frequencies, ElementBeam::dipole(0.4, kPi / 2));
  ASSERT_EQ(seen.sources.size(), 7U);
  EXPECT_TRUE(seen.sources[0].is_flux_free);
  const Vector3 s0 = enu_of_direction(array, zenith(array, kNoon), kNoon);
  const auto reference =
      model_visibilities(array, seen.sources, frequencies, s0, kLinear, ModelMethod::reference);
  const auto fast = model_visibilities(array, seen.sources, frequencies, s0, kLinear);
  ASSERT_EQ(reference.size(), 3U * n_pairs(23) * 4U);
  double largest = 0;
  double worst = 0;
  for (std::size_t k = 0; k < fast.size(); ++k) {
    largest = std::max(largest, std::abs(reference[k]));
    worst = std::max(worst, std::abs(reference[k] - fast[k]));
  }
  EXPECT_LT(worst, 1e-12 * largest);
}

// The sign and the frame of conventions.md 5, written out for one point, one baseline.
TEST(SkyVisibilities, SignAndPhaseCenterAreThoseOfTheConventions) {
  ArrayLayout array = random_array(2);
  array.antennas[0].enu_m = {10, 20, 1};
  array.antennas[1].enu_m = {-5, 3, 0};
  SkyModel sky = sky_model_named("Cas A");
  sky.sources[0].fixed = direction_of_enu(array, {0.3, -0.2, std::sqrt(0.87)}, kNoon);
  const std::vector<double> frequencies{200e6};
  const auto seen = apparent_sky(sky, array, kNoon, frequencies);
  const double s = flux_jy(sky.sources[0], 200e6, julian_year(kNoon));
  const SkyDirection center = direction_of_enu(array, {0.1, 0.05, std::sqrt(0.9875)}, kNoon);
  const auto axes = uvw_axes(array, center, kNoon);
  const auto model = model_visibilities(array, seen.sources, frequencies, axes[2], kXx);
  const Vector3 b{15, 17, 1};  // r_0 - r_1
  const auto dot = [](const Vector3& p, const Vector3& q) {
    return p[0] * q[0] + p[1] * q[1] + p[2] * q[2];
  };
  const double wavelength_m = kSpeedOfLight_m_per_s / 200e6;
  const Vector3 uvw{dot(axes[0], b), dot(axes[1], b), dot(axes[2], b)};
  const Vector3 lmn{dot(axes[0], seen.sources[0].enu), dot(axes[1], seen.sources[0].enu),
                    dot(axes[2], seen.sources[0].enu)};
  const double turns = (uvw[0] * lmn[0] + uvw[1] * lmn[1] + uvw[2] * (lmn[2] - 1)) / wavelength_m;
  const cf64 expected = std::polar(s, 2 * kPi * turns);
  EXPECT_LT(std::abs(model[pair_index(0, 1)] - expected), 1e-9 * s);
  EXPECT_NEAR(model[pair_index(1, 1)].real(), s, 1e-9 * s);
}

TEST(SkyVisibilities, AGaussianIsItsTransform) {
  ArrayLayout array = random_array(2);
  const double wavelength_m = kSpeedOfLight_m_per_s / 200e6;
  array.antennas[0].enu_m = {30 * wavelength_m, 0, 0};  // 30 wavelengths to the east
  array.antennas[1].enu_m = {0, 0, 0};
  SkyModel sky = sky_model_named("Cas A");
  sky.sources[0].fixed = zenith(array, kNoon);
  sky.sources[0].major_rad = 0.02;
  sky.sources[0].minor_rad = 0.002;
  const std::vector<double> frequencies{200e6};
  const auto size = [&](double angle_rad) {
    sky.sources[0].angle_rad = angle_rad;
    const auto seen = apparent_sky(sky, array, kNoon, frequencies);
    const auto model = model_visibilities(array, seen.sources, frequencies, {0, 0, 1}, kXx);
    return std::abs(model[pair_index(0, 1)]) / model[pair_index(0, 0)].real();
  };
  // Major axis north-south: the baseline sees the minor one; then along the baseline.
  const auto expected = [](double fwhm) {
    return std::exp(-std::pow(kPi * fwhm * 30, 2) / (4 * std::log(2.0)));
  };
  EXPECT_NEAR(size(0), expected(0.002), 2e-3);
  EXPECT_NEAR(size(kPi / 2), expected(0.02), 2e-3);
}

TEST(SkyVisibilities, WhatIsNotThereIsSaid) {
  const ArrayLayout array = random_array(3);
  const std::vector<double> frequencies{159.375e6};
  // Midday of November at the Murchison: the Sun is up, Cas A is not, the flux of Her A is not
  // known.
  const auto seen = apparent_sky(sky_model_named("sun,a-team"), array, kNoon, frequencies);
  EXPECT_EQ(seen.sources[0].name, "Sun");
  EXPECT_THAT(seen.left_out, Contains(HasSubstr("Cas A: at elevation -")));
  EXPECT_THAT(seen.left_out, Contains(HasSubstr("Her A: its flux at 159.375 MHz is not known")));
  EXPECT_TRUE(seen.warnings.empty());
  const auto message = [&](const char* model, double min_elevation_rad) -> std::string {
    try {
      apparent_sky(sky_model_named(model), array, kNoon, frequencies, ElementBeam::isotropic(),
                   min_elevation_rad);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message("cas-a", 0), HasSubstr("Cas A: at elevation"));
  EXPECT_THAT(message("her-a", 0), HasSubstr("none is extrapolated"));
  EXPECT_THAT(message("sun", 1.5), HasSubstr("above 85.9 deg"));
  const auto without_sun = apparent_sky(sky_model_named("vir-a"), array, kNoon, frequencies);
  EXPECT_THAT(without_sun.warnings, Contains(HasSubstr("the Sun is up")));
  ArrayLayout turned = array;
  turned.inputs[1].feed_angle_rad = 0.1;
  EXPECT_THROW(apparent_sky(sky_model_named("sun"), turned, kNoon, frequencies,
                            ElementBeam::dipole(0.4, kPi / 2)),
               ConfigError);
}

}  // namespace
}  // namespace ryle
