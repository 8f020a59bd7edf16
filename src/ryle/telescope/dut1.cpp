// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/dut1.hpp"

#include <erfa.h>

#include <algorithm>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/text.hpp"
#include "ryle/core/units.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle {
namespace {

// TAI - UTC on the day of a UTC Julian date; a leap second belongs to the day it ends.
double tai_minus_utc_s(double jd1, double jd2) {
  int year = 0, month = 0, day = 0;
  double fraction = 0, seconds = 0;
  if (eraJd2cal(jd1, jd2, &year, &month, &day, &fraction) < 0 ||
      eraDat(year, month, day, 0.0, &seconds) < 0)
    throw ConfigError("no leap seconds are known for JD " + std::to_string(jd1 + jd2));
  return seconds;
}

// Columns 8-15 (MJD) and 59-68 (UT1 - UTC) of the IERS; blank where there is no prediction yet.
constexpr std::size_t kMjdColumn = 7, kMjdWidth = 8, kDut1Column = 58, kDut1Width = 10;

struct Line {
  double mjd = 0, dut1_s = 0;
  bool empty = false;
};

bool is_finals(std::string_view line, double& mjd) {
  return line.size() >= kMjdColumn + kMjdWidth &&
         parse_finite(trimmed(line.substr(kMjdColumn, kMjdWidth)), mjd) && mjd > 40000;
}

Line parse_finals(std::string_view line, double mjd) {
  Line row;
  row.mjd = mjd;
  const auto value = trimmed(line.substr(std::min(kDut1Column, line.size())).substr(0, kDut1Width));
  row.empty = value.empty();
  if (!row.empty && !parse_finite(value, row.dut1_s))
    throw FormatError("columns 59-68 are no number (UT1 - UTC)");
  return row;
}

Line parse_pair(std::string_view line) {
  Line row;
  const std::size_t end = line.find_first_of(", \t");
  const std::size_t next =
      end == std::string_view::npos ? end : line.find_first_not_of(", \t", end);
  if (next == std::string_view::npos || !parse_finite(std::string(line.substr(0, end)), row.mjd) ||
      !parse_finite(std::string(trimmed(line.substr(next))), row.dut1_s))
    throw FormatError("\"" + std::string(line.substr(0, 40)) +
                      "\" is no pair \"mjd,dut1_s\", and no line of finals2000A.all");
  return row;
}

}  // namespace

Dut1Table Dut1Table::parse(const std::string& text, const std::string& path) {
  Dut1Table table;
  table.path_ = path;
  std::size_t number = 0;
  double last_mjd = -1;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const auto whole = std::string_view(text).substr(at, end - at);
    const auto line = trimmed(whole);
    at = end + 1;
    ++number;
    if (line.empty() || line.front() == '#' || line == "mjd,dut1_s") continue;
    try {
      double mjd = 0;
      const Line row = is_finals(whole, mjd) ? parse_finals(whole, mjd) : parse_pair(line);
      if (row.empty) continue;
      if (row.mjd <= last_mjd || row.mjd < 41317 || row.mjd > 88069)
        throw FormatError("MJD " + std::to_string(row.mjd) +
                          " is not after the one before it, or not in 1972 .. 2099");
      // |UT1 - UTC| stays below 0.9 s by the definition of UTC.
      if (std::fabs(row.dut1_s) > 0.95)
        throw FormatError("UT1 - UTC is " + std::to_string(row.dut1_s) + " s; it stays within 0.9");
      last_mjd = row.mjd;
      const double day = std::floor(row.mjd);
      const std::int64_t tai_ns =
          tai_ns_from_mjd_utc(static_cast<std::int64_t>(day), (row.mjd - day) * 86400);
      table.rows_.push_back({tai_ns, row.dut1_s - tai_minus_utc_s(kMjdZero_jd + day, 0)});
    } catch (const FormatError& e) {
      throw FormatError(path + ":" + std::to_string(number) + ": " + e.what());
    }
  }
  if (table.rows_.size() < 2) throw FormatError(path + ": fewer than two rows of UT1 - UTC");
  return table;
}

Dut1Table Dut1Table::load(const std::string& path) { return parse(read_text_file(path), path); }

double Dut1Table::at(std::int64_t tai_ns) const {
  if (tai_ns < first_tai_ns() || tai_ns > last_tai_ns()) {
    throw ConfigError("no UT1 for " + utc_iso(tai_ns) + " UTC: " + path_ + " runs from " +
                      utc_iso(first_tai_ns(), 0) + " to " + utc_iso(last_tai_ns(), 0) +
                      "; a newer finals2000A.all of the IERS, or dut1_s, would do");
  }
  auto after = std::upper_bound(rows_.begin(), rows_.end(), tai_ns,
                                [](std::int64_t t, const Row& row) { return t < row.tai_ns; });
  if (after == rows_.end()) --after;
  const Row &left = *(after - 1), &right = *after;
  const double part =
      static_cast<double>(tai_ns - left.tai_ns) / static_cast<double>(right.tai_ns - left.tai_ns);
  const double ut1_minus_tai_s =
      left.ut1_minus_tai_s + part * (right.ut1_minus_tai_s - left.ut1_minus_tai_s);
  const auto utc = utc_julian_date(tai_ns);
  return ut1_minus_tai_s + tai_minus_utc_s(utc[0], utc[1]);
}

double EarthOrientation::dut1_at(std::int64_t tai_ns) const {
  return table == nullptr ? dut1_s : table->at(tai_ns);
}

}  // namespace ryle
