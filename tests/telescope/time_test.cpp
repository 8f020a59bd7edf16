// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle {
namespace {

constexpr std::int64_t kSecond_ns = 1'000'000'000;

TEST(Time, LeapSecondOf2016IsCountedOnceAndLabelled60) {
  const std::int64_t before = tai_ns_from_utc_iso("2016-12-31T23:59:59");
  const std::int64_t leap = tai_ns_from_utc_iso("2016-12-31T23:59:60");
  const std::int64_t after = tai_ns_from_utc_iso("2017-01-01T00:00:00");
  EXPECT_EQ(leap - before, kSecond_ns);
  EXPECT_EQ(after - leap, kSecond_ns);
  EXPECT_EQ(utc_iso(before), "2016-12-31T23:59:59.000");
  EXPECT_EQ(utc_iso(leap), "2016-12-31T23:59:60.000");
  EXPECT_EQ(utc_iso(leap + kSecond_ns / 2, 1), "2016-12-31T23:59:60.5");
  EXPECT_EQ(utc_iso(after, 0), "2017-01-01T00:00:00");
}

TEST(Time, UnixAndMjdAreUtc) {
  // 2017-01-01 UTC = 1483228800 POSIX = MJD 57754; TAI - UTC = 37 s then, 36 s the second before.
  EXPECT_EQ(tai_ns_from_unix(1483228800), (1483228800 + 37) * kSecond_ns);
  EXPECT_EQ(tai_ns_from_unix(1483228799, 7), (1483228799 + 36) * kSecond_ns + 7);
  EXPECT_EQ(tai_ns_from_mjd_utc(57754, 0.25), (1483228800 + 37) * kSecond_ns + kSecond_ns / 4);
  EXPECT_EQ(tai_ns_from_mjd_utc(57753, 86400.5), tai_ns_from_utc_iso("2016-12-31T23:59:60.5"));
  EXPECT_EQ(tai_ns_from_unix(1719509546), tai_ns_from_utc_iso("2024-06-27T17:32:26"));
}

TEST(Time, IsoTextKeepsNanosecondsBothWays) {
  for (const char* text : {"1972-01-01T00:00:00.000000001", "1999-12-31T23:59:59.999999999",
                           "2015-06-30T23:59:60.123456789", "2026-11-21T19:14:02.000000000"}) {
    EXPECT_EQ(utc_iso(tai_ns_from_utc_iso(text), 9), text);
  }
  EXPECT_EQ(tai_ns_from_utc_iso("2026-11-21 19:14:02Z"),
            tai_ns_from_utc_iso("2026-11-21T19:14:02"));
  EXPECT_EQ(tai_ns_from_utc_iso("2026-11-21"), tai_ns_from_utc_iso("2026-11-21T00:00"));
}

TEST(Time, BadTextIsRejected) {
  for (const char* text : {"", "now", "2026-13-01T00:00:00", "2026-02-30T00:00:00",
                           "2026-11-21T24:00:01", "2026-11-21T12:00:60", "2026-11-21T12:61:00",
                           "2026-11-21T12:00:00+01:00", "21.11.2026", "2026-11-21T"}) {
    EXPECT_THROW(tai_ns_from_utc_iso(text), ConfigError) << text;
  }
}

TEST(Time, JulianDates) {
  const std::int64_t t = tai_ns_from_utc_iso("2019-11-04T03:35:37");
  const auto jd = utc_julian_date(t);
  // astropy Time(...).jd1, jd2 = 2458792.0, -0.3502662037037037
  EXPECT_NEAR((jd[0] - 2458792.0) + jd[1], -0.3502662037037037, 1e-14);
  // MJD 58791 + 12937 s; a double of 5e9 s has steps of 9.5e-7 s
  EXPECT_NEAR(utc_mjd_s(t), 58791 * 86400.0 + 12937, 1e-6);
  EXPECT_NEAR(utc_mjd_s(t + kSecond_ns / 4) - utc_mjd_s(t), 0.25, 1e-6);
  // within the day that ends with a leap second every second counts one
  EXPECT_NEAR(utc_mjd_s(tai_ns_from_utc_iso("2016-12-31T12:00:00")), 57753 * 86400.0 + 43200, 1e-6);
}

}  // namespace
}  // namespace ryle
