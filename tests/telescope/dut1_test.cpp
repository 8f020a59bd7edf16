// SPDX-License-Identifier: BSD-3-Clause
// UT1 - UTC from files of the IERS and plain tables; the leap second of 2016.
#include "ryle/telescope/dut1.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/telescope/pointing.hpp"
#include "tests/telescope/dut1_rows.hpp"

namespace ryle {
namespace {

std::string complaint(const std::string& text) {
  try {
    Dut1Table::parse(text, "t");
  } catch (const FormatError& e) {
    return e.what();
  }
  return "no complaint";
}

TEST(Dut1, ReadsFinalsOfTheIers) {
  // Two rows as the IERS writes them, and one of the far future, blank but for its date.
  const std::string finals =
      "161231 57753.00 I  0.082118 0.000045  0.257853 0.000055  I-0.4075800 0.0000078  1.2460 "
      "0.0050"
      "\n17 1 1 57754.00 I  0.080518 0.000045  0.258968 0.000055  I 0.5911600 0.0000075  1.3240 0.0"
      "\n17 1 2 57755.00 I  0.079076 0.000045  0.260095 0.000055  I 0.5897900 0.0000075  1.4300 0.0"
      "\n30 1 1 62502.00\n";
  const auto table = Dut1Table::parse(finals, "finals2000A.all");
  EXPECT_NEAR(table.at(tai_ns_from_utc_iso("2016-12-31T00:00:00")), -0.40758, 1e-9);
  EXPECT_NEAR(table.at(tai_ns_from_utc_iso("2017-01-01T00:00:00")), 0.59116, 1e-9);
  // UT1 - TAI is what is interpolated: the step of the leap second is no slope of the day before.
  EXPECT_NEAR(table.at(tai_ns_from_utc_iso("2016-12-31T12:00:00")), -0.40758 - 0.00063, 2e-8);
  EXPECT_NEAR(table.at(tai_ns_from_utc_iso("2016-12-31T23:59:60.5")), 0.59116 - 1, 2e-8);
  EXPECT_NEAR(table.at(tai_ns_from_utc_iso("2017-01-01T12:00:00")), 0.590475, 1e-9);
}

TEST(Dut1, OutsideIsAnError) {
  const auto table = Dut1Table::parse("# comment\nmjd,dut1_s\n57753,-0.4\n57754 0.59\n", "eop.csv");
  EXPECT_NO_THROW(table.at(tai_ns_from_utc_iso("2017-01-01T00:00:00")));
  for (const char* utc : {"2016-12-30T23:59:59", "2017-01-01T00:00:01"}) {
    try {
      table.at(tai_ns_from_utc_iso(utc));
      ADD_FAILURE() << utc;
    } catch (const ConfigError& e) {
      EXPECT_NE(std::string(e.what()).find("eop.csv runs from 2016-12-31T00:00:00"),
                std::string::npos)
          << e.what();
    }
  }
}

TEST(Dut1, ComplaintsNameTheLine) {
  EXPECT_NE(complaint("57753,0.1\n57753,0.1\n").find("t:2: MJD"), std::string::npos);
  EXPECT_NE(complaint("57753,0.1\n57754,one\n").find("t:2: \"57754,one\""), std::string::npos);
  EXPECT_NE(complaint("57753,1.1\n57754,0.1\n").find("t:1: UT1 - UTC is 1.1"), std::string::npos);
  EXPECT_NE(complaint("57753,0.1\n").find("fewer than two"), std::string::npos);
  EXPECT_NE(complaint("").find("fewer than two"), std::string::npos);
  EXPECT_THROW(Dut1Table::load("/nowhere/finals2000A.all"), IoError);
}

// The hour angle of a star runs on through a leap second with the table; with one number for both
// days it would jump by 15 arcsec.
TEST(Dut1, TheSkyRunsOnThroughALeapSecond) {
  ArrayLayout array;
  array.latitude_rad = 44.5239 * kDegree_rad;
  array.longitude_rad = 11.6456 * kDegree_rad;
  EarthOrientation eo;
  eo.table = std::make_shared<const Dut1Table>(Dut1Table::parse(test::kDut1Of2016, "t"));
  BeamPointing beam;
  beam.name = "b";
  beam.longitude_rad = 1.9;
  beam.latitude_rad = 0.1;
  const BeamSky sky(array, {beam}, eo);
  const std::int64_t t0 = tai_ns_from_utc_iso("2016-12-31T23:59:58");
  Vector3 before = sky.directions_enu(t0)[0];
  double first_step = 0;
  for (int k = 1; k < 10; ++k) {
    const Vector3 now = sky.directions_enu(t0 + k * std::int64_t{500'000'000})[0];
    const double step =
        std::hypot(now[0] - before[0], now[1] - before[1], now[2] - before[2]) / kDegree_rad * 3600;
    if (k == 1) first_step = step;
    // Half a second of time is 7.5 arcsec cos(dec); the same in every step.
    EXPECT_NEAR(step, 7.5 * std::cos(0.1), 0.1) << k;
    EXPECT_NEAR(step, first_step, 1e-3) << k;
    before = now;
  }
}

}  // namespace
}  // namespace ryle
