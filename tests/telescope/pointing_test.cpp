// SPDX-License-Identifier: BSD-3-Clause
// T-BF-06, 19, 20 as far as directions go: frames, grids, time of the data.
#include "ryle/telescope/pointing.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"

namespace ryle {
namespace {

constexpr double kArcsec_rad = kDegree_rad / 3600;

ArrayLayout medicina() {
  ArrayLayout array;
  array.latitude_rad = 44.5239 * kDegree_rad;
  array.longitude_rad = 11.6456 * kDegree_rad;
  array.height_m = 25;
  return array;
}

BeamPointing beam(const std::string& name, BeamFrame frame, double lon_deg, double lat_deg) {
  BeamPointing b;
  b.name = name;
  b.frame = frame;
  b.longitude_rad = lon_deg * kDegree_rad;
  b.latitude_rad = lat_deg * kDegree_rad;
  return b;
}

double separation(const Vector3& a, const Vector3& b) {
  const Vector3 d{a[0] - b[0], a[1] - b[1], a[2] - b[2]};
  return 2 * std::asin(std::min(1.0, 0.5 * std::hypot(d[0], d[1], d[2])));
}

// The quick chain (parameters once a minute) against the full one, over two hours and at RA 0 h,
// just before 24 h, near the pole and across the leap second of 2016.
TEST(Pointing, IcrsFollowsTheFullChain) {
  const ArrayLayout array = medicina();
  const EarthOrientation eo{-0.2};
  const std::vector<SkyDirection> sources{
      {0, 0.5}, {2 * kPi - 1e-9, 0.5}, {0.929, 0.9526}, {1.0, 89.99 * kDegree_rad}, {4.0, -0.3}};
  std::vector<BeamPointing> beams;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    BeamPointing b;
    b.name = std::to_string(k);
    b.longitude_rad = sources[k].ra_rad;
    b.latitude_rad = sources[k].dec_rad;
    beams.push_back(b);
  }
  const BeamSky sky(array, beams, eo);
  EXPECT_TRUE(sky.moves());
  for (const char* start : {"2016-12-31T23:59:00.000", "2025-03-01T12:00:00.000"}) {
    const std::int64_t t0 = tai_ns_from_utc_iso(start);
    for (int step = 0; step < 40; ++step) {
      const std::int64_t t = t0 + step * std::int64_t{7'777'777'777};
      const auto got = sky.directions_enu(t);
      const auto want = enu_of_directions(array, sources, t, eo);
      for (std::size_t k = 0; k < sources.size(); ++k)
        EXPECT_LT(separation(got[k], want[k]), 0.005 * kArcsec_rad) << start << step << " " << k;
    }
  }
}

// Any instant gives the same bits, whatever was asked before: a replay is bit-identical.
TEST(Pointing, DependsOnTheInstantAlone) {
  const std::vector<BeamPointing> beams{beam("a", BeamFrame::icrs, 53, 54),
                                        beam("b", BeamFrame::apparent, 53, 54)};
  const BeamSky one(medicina(), beams), two(medicina(), beams);
  const std::int64_t t = tai_ns_from_utc_iso("2025-03-01T12:00:30.250");
  one.directions_enu(t - 59'000'000'000);
  one.directions_enu(t - 1'000'000'000);
  const auto a = one.directions_enu(t), b = two.directions_enu(t);
  EXPECT_EQ(a, b);
  one.directions_enu(t + 3'600'000'000'000);
  EXPECT_EQ(one.directions_enu(t), b);
}

TEST(Pointing, StationaryFramesStay) {
  auto frozen = beam("frozen", BeamFrame::icrs, 53, 54);
  const std::int64_t t = tai_ns_from_utc_iso("2025-03-01T12:00:00.000");
  frozen.freeze_at_tai_ns = t;
  const BeamSky sky(medicina(), {beam("transit", BeamFrame::hadec, 0, 44.5239),
                                 beam("west", BeamFrame::hadec, 90, 0),
                                 beam("east", BeamFrame::azel, 90, 30), frozen});
  EXPECT_FALSE(sky.moves());
  const auto enu = sky.directions_enu(t + 123'456'789'000);
  EXPECT_LT(separation(enu[0], {0, 0, 1}), 1e-9);
  EXPECT_LT(separation(enu[1], {-1, 0, 0}), 1e-9);  // hour angle is positive west
  EXPECT_LT(separation(enu[2], {std::cos(kPi / 6), 0, 0.5}), 1e-9);
  const BeamSky tracking(medicina(), {beam("b", BeamFrame::icrs, 53, 54)});
  EXPECT_EQ(enu[3], tracking.directions_enu(t)[0]);
  EXPECT_GT(separation(enu[3], tracking.directions_enu(t + 60'000'000'000)[0]), 5e-4);
}

// Of date: the place a source has there is where its ICRS place leads (Atic13 and back by ERFA in
// the peer test); here a full day turns it by a full turn and the sky by a sidereal one.
TEST(Pointing, ApparentTurnsWithTheSky) {
  const BeamSky sky(medicina(), {beam("b", BeamFrame::apparent, 10, 20)});
  const std::int64_t t = tai_ns_from_utc_iso("2025-03-01T00:00:00.000");
  const auto sidereal_day_ns = static_cast<std::int64_t>(86'164.0905e9);
  EXPECT_LT(separation(sky.directions_enu(t)[0], sky.directions_enu(t + sidereal_day_ns)[0]),
            1 * kArcsec_rad);
  const double lst = local_sidereal_time_rad(medicina(), t);
  const BeamSky same(medicina(), {beam("h", BeamFrame::hadec, lst / kDegree_rad - 10, 20)});
  EXPECT_LT(separation(sky.directions_enu(t)[0], same.directions_enu(t)[0]), 0.5 * kArcsec_rad);
}

TEST(Pointing, EphemeridesAreInterpolatedAndNeverExtrapolated) {
  const std::int64_t t0 = tai_ns_from_utc_iso("2025-03-01T00:00:00.000");
  auto pass = beam("satellite", BeamFrame::ephemeris, 0, 0);
  const auto truth = [](double s) {  // passes north, where azimuth jumps
    return EphemerisRow{0, (-0.3 + 0.02 * s) + 1e-4 * s * s, 0.7 + 0.3 * std::sin(0.02 * s)};
  };
  for (int k = 0; k < 12; ++k) {
    EphemerisRow row = truth(3.0 * k);
    row.tai_ns = t0 + k * 3'000'000'000LL;
    row.azimuth_rad = std::fmod(row.azimuth_rad + 2 * kPi, 2 * kPi);
    pass.ephemeris.push_back(row);
  }
  auto beside = beam("beside", BeamFrame::relative_to, 0, 0);
  beside.base = "satellite";
  beside.offset_x_rad = 0.01;
  const BeamSky sky(medicina(), {pass, beside});
  for (double s = 0; s <= 33; s += 0.37) {
    const EphemerisRow want = truth(s);
    const auto enu = sky.directions_enu(t0 + static_cast<std::int64_t>(s * 1e9));
    const Vector3 there{std::cos(want.elevation_rad) * std::sin(want.azimuth_rad),
                        std::cos(want.elevation_rad) * std::cos(want.azimuth_rad),
                        std::sin(want.elevation_rad)};
    EXPECT_LT(separation(enu[0], there), 0.5 * kArcsec_rad) << s;
    EXPECT_NEAR(separation(enu[0], enu[1]), 0.01, 1e-5);
  }
  EXPECT_THROW(sky.directions_enu(t0 - 1), ConfigError);
  EXPECT_THROW(sky.directions_enu(t0 + 33'000'000'001), ConfigError);
}

TEST(Pointing, OffsetsLieWhereTheyShould) {
  auto base = beam("base", BeamFrame::icrs, 100, 60);
  auto tangent = beam("lm", BeamFrame::relative_to, 0, 0);
  tangent.base = "base";
  tangent.offset_kind = OffsetKind::tangent;
  tangent.offset_x_rad = 0.02;
  tangent.offset_y_rad = -0.03;
  auto chained = tangent;
  chained.name = "of date";
  chained.base = "spherical";
  chained.offset_x_rad = chained.offset_y_rad = 0;
  auto spherical = beam("spherical", BeamFrame::relative_to, 0, 0);
  spherical.base = "base";
  spherical.offset_x_rad = 0.01;
  spherical.offset_y_rad = 0.005;
  const BeamSky sky(medicina(), {tangent, base, spherical, chained});
  const auto& lm = sky.beams()[0];
  const double ra0 = 100 * kDegree_rad, dec0 = 60 * kDegree_rad;
  EXPECT_NEAR(std::cos(lm.latitude_rad) * std::sin(lm.longitude_rad - ra0), 0.02, 1e-12);
  EXPECT_NEAR(std::sin(lm.latitude_rad) * std::cos(dec0) -
                  std::cos(lm.latitude_rad) * std::sin(dec0) * std::cos(lm.longitude_rad - ra0),
              -0.03, 1e-12);
  EXPECT_NEAR(sky.beams()[2].longitude_rad, ra0 + 0.01 / std::cos(dec0), 1e-12);
  EXPECT_NEAR(sky.beams()[2].latitude_rad, dec0 + 0.005, 1e-12);
  EXPECT_EQ(sky.beams()[3].longitude_rad, sky.beams()[2].longitude_rad);
  EXPECT_EQ(sky.beams()[3].frame, BeamFrame::icrs);
  // Hour angle: the plain difference, not divided by cos dec.
  auto drift = beam("drift", BeamFrame::hadec, 10, 60);
  drift.offset_x_rad = 0.01;
  EXPECT_NEAR(BeamSky(medicina(), {drift}).beams()[0].longitude_rad, 10 * kDegree_rad + 0.01,
              1e-12);
}

TEST(Pointing, RejectsWhatMakesNoSense) {
  const auto good = beam("a", BeamFrame::icrs, 1, 2);
  const auto rejected = [&](std::vector<BeamPointing> beams) {
    EXPECT_THROW(BeamSky(medicina(), beams), ConfigError);
  };
  rejected({good, good});
  auto bad = good;
  bad.latitude_rad = 1.6;
  rejected({bad});
  bad = good;
  bad.longitude_rad = NAN;
  rejected({bad});
  bad = beam("b", BeamFrame::relative_to, 0, 0);
  bad.base = "c";
  rejected({good, bad});
  auto other = bad;
  other.name = "c";
  other.base = "b";
  rejected({bad, other});
  bad = beam("b", BeamFrame::azel, 0, 0);
  bad.freeze_at_tai_ns = 1;
  rejected({bad});
  bad = beam("b", BeamFrame::ephemeris, 0, 0);
  rejected({bad});
  bad = good;
  bad.offset_kind = OffsetKind::tangent;
  bad.offset_x_rad = 1.1;
  rejected({bad});
  bad = beam("pole", BeamFrame::icrs, 0, 90);
  bad.offset_x_rad = 0.1;
  rejected({bad});
}

TEST(Pointing, GridsAreEvenAndNearestFirst) {
  const auto hex = beam_grid(GridPattern::hex, 31, 0.02, 0.01);
  ASSERT_EQ(hex.size(), 31u);
  EXPECT_EQ(hex[0].x_rad, 0);
  EXPECT_EQ(hex[0].y_rad, 0);
  double last = 0;
  for (std::size_t k = 0; k < hex.size(); ++k) {
    const double radius = std::hypot(hex[k].x_rad / 0.02, hex[k].y_rad / 0.01);
    EXPECT_GE(radius, last - 1e-9);
    last = radius;
    double nearest = 1e9;
    for (std::size_t j = 0; j < hex.size(); ++j) {
      if (j != k)
        nearest = std::min(nearest, std::hypot((hex[k].x_rad - hex[j].x_rad) / 0.02,
                                               (hex[k].y_rad - hex[j].y_rad) / 0.01));
    }
    EXPECT_NEAR(nearest, 1, 1e-9);
  }
  EXPECT_NEAR(std::hypot(hex[6].x_rad / 0.02, hex[6].y_rad / 0.01), 1, 1e-9);  // six neighbors
  EXPECT_GT(std::hypot(hex[7].x_rad / 0.02, hex[7].y_rad / 0.01), 1.5);
  const auto square = beam_grid(GridPattern::square, 9, 1, 1);
  for (const auto& p : square) EXPECT_LE(std::max(std::fabs(p.x_rad), std::fabs(p.y_rad)), 1);
  EXPECT_THROW(beam_grid(GridPattern::hex, 0, 1, 1), ConfigError);
  EXPECT_EQ(grid_beams(beam("x", BeamFrame::icrs, 0, 0), square, OffsetKind::tangent)[8].name,
            "x/9");
}

TEST(Pointing, ChunksAreEvaluatedInTheirMiddle) {
  const SampleClock clock{1'000'000'000'000, {78125, 4}};
  EXPECT_EQ(middle_tai_ns(clock, 78125, 2 * 78125), 1'000'000'000'000 + 8'000'000'000);
}

}  // namespace
}  // namespace ryle
