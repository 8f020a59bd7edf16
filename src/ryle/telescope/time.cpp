// SPDX-License-Identifier: BSD-3-Clause
#include <erfa.h>

#include <cmath>
#include <cstdio>

#include "ryle/core/error.hpp"
#include "ryle/core/integer.hpp"
#include "ryle/core/units.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle {
namespace {

constexpr double kUnixEpoch_jd = 2'440'587.5;

/// TAI - UTC at 0h UTC of a day, whole nanoseconds; a positive leap second belongs to the day it
/// ends.
std::int64_t tai_minus_utc_ns(std::int64_t mjd) {
  int year = 0, month = 0, day = 0;
  double fraction = 0, delta_s = 0;
  if (eraJd2cal(kMjdZero_jd, static_cast<double>(mjd), &year, &month, &day, &fraction) != 0 ||
      eraDat(year, month, day, 0.0, &delta_s) < 0) {
    throw ConfigError("MJD " + std::to_string(mjd) + " lies outside the calendar; check the date");
  }
  return std::llround(delta_s * 1e9);
}

/// UTC day of an instant and the time into it; a day with a leap second has 86401 s.
struct UtcDay {
  std::int64_t mjd;
  std::int64_t into_day_ns;
};

UtcDay utc_day(std::int64_t tai_ns) {
  // TAI runs ahead of UTC: the UTC day is the TAI day or the one before (after it, never before
  // 1961).
  std::int64_t mjd = kUnixEpoch_mjd + floor_divide(tai_ns, kDay_s * kSecond_ns);
  for (;;) {
    const std::int64_t start_tai_ns =
        (mjd - kUnixEpoch_mjd) * kDay_s * kSecond_ns + tai_minus_utc_ns(mjd);
    if (tai_ns >= start_tai_ns) return {mjd, tai_ns - start_tai_ns};
    --mjd;
  }
}

bool two_digits(const char*& p, int& value) {
  if (p[0] < '0' || p[0] > '9' || p[1] < '0' || p[1] > '9') return false;
  value = (p[0] - '0') * 10 + (p[1] - '0');
  p += 2;
  return true;
}

struct CivilTime {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  std::int64_t fraction_ns = 0;
};

/// YYYY-MM-DD, optionally Thh:mm, :ss, .fraction, Z; a blank may stand for the T.
bool parse_civil(const std::string& text, CivilTime& t) {
  const char* p = text.c_str();
  int century = 0, rest = 0;
  if (!two_digits(p, century) || !two_digits(p, rest)) return false;
  t.year = century * 100 + rest;
  if (*p++ != '-' || !two_digits(p, t.month) || *p++ != '-' || !two_digits(p, t.day)) return false;
  if (*p == '\0') return true;
  if (*p != 'T' && *p != ' ') return false;
  ++p;
  if (!two_digits(p, t.hour) || *p++ != ':' || !two_digits(p, t.minute)) return false;
  if (*p == ':') {
    ++p;
    if (!two_digits(p, t.second)) return false;
    if (*p == '.') {
      std::int64_t unit_ns = kSecond_ns / 10;
      for (++p; *p >= '0' && *p <= '9'; ++p, unit_ns /= 10) t.fraction_ns += unit_ns * (*p - '0');
    }
  }
  if (*p == 'Z') ++p;
  return *p == '\0';
}

}  // namespace

std::string utc_iso(std::int64_t tai_ns, int decimals) {
  decimals = decimals < 0 ? 0 : decimals > 9 ? 9 : decimals;
  const auto jd = utc_julian_date(tai_ns);
  int year = 0, month = 0, day = 0, hms[4] = {};
  if (eraD2dtf("UTC", decimals, jd[0], jd[1], &year, &month, &day, hms) < 0) {
    throw ConfigError("TAI time " + std::to_string(tai_ns) + " ns lies outside the calendar");
  }
  char text[64];
  if (decimals == 0) {
    std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d", year, month, day, hms[0],
                  hms[1], hms[2]);
  } else {
    std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%0*d", year, month, day, hms[0],
                  hms[1], hms[2], decimals, hms[3]);
  }
  return text;
}

std::int64_t tai_ns_from_utc_iso(const std::string& iso) {
  CivilTime t;
  if (!parse_civil(iso, t)) {
    throw ConfigError("\"" + iso + "\" is not a UTC time; write for example 2026-11-21T19:14:02.5");
  }
  double jd1 = 0, jd2 = 0;
  const int status =
      eraDtf2d("UTC", t.year, t.month, t.day, t.hour, t.minute, t.second, &jd1, &jd2);
  if (status < 0 || status == 2 || status == 3) {  // 2, 3: second 60 on a day without a leap second
    throw ConfigError("\"" + iso + "\" is not a date and time of the UTC calendar");
  }
  double mjd = 0, unused = 0;
  eraCal2jd(t.year, t.month, t.day, &unused, &mjd);
  const std::int64_t into_day_s = t.hour * 3600 + t.minute * 60 + t.second;
  const auto day = static_cast<std::int64_t>(mjd);
  return ((day - kUnixEpoch_mjd) * kDay_s + into_day_s) * kSecond_ns + t.fraction_ns +
         tai_minus_utc_ns(day);
}

std::int64_t tai_ns_from_unix(std::int64_t unix_s, std::int64_t ns) {
  // POSIX seconds count 86400 a day; the stamp of second 60 is that of the next day's first second.
  const std::int64_t mjd = kUnixEpoch_mjd + floor_divide(unix_s, kDay_s);
  return unix_s * kSecond_ns + ns + tai_minus_utc_ns(mjd);
}

std::int64_t tai_ns_from_mjd_utc(std::int64_t mjd, double seconds_of_day) {
  return (mjd - kUnixEpoch_mjd) * kDay_s * kSecond_ns + std::llround(seconds_of_day * 1e9) +
         tai_minus_utc_ns(mjd);
}

std::array<double, 2> utc_julian_date(std::int64_t tai_ns) {
  // ERFA's quasi-JD: on a day with a leap second the fraction runs over 86401 s.
  const std::int64_t day = floor_divide(tai_ns, kDay_s * kSecond_ns);
  const double tai1 = kUnixEpoch_jd + static_cast<double>(day);
  const double tai2 = static_cast<double>(tai_ns - day * kDay_s * kSecond_ns) / (kDay_s * 1e9);
  double utc1 = 0, utc2 = 0;
  if (eraTaiutc(tai1, tai2, &utc1, &utc2) < 0) {
    throw ConfigError("TAI time " + std::to_string(tai_ns) + " ns lies outside the calendar");
  }
  return {utc1, utc2};
}

double utc_mjd_s(std::int64_t tai_ns) {
  const UtcDay day = utc_day(tai_ns);
  return static_cast<double>(day.mjd * kDay_s) + static_cast<double>(day.into_day_ns) * 1e-9;
}

}  // namespace ryle
