// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/recording_time.hpp"

#include "ryle/core/integer.hpp"
#include "ryle/core/units.hpp"

#include <erfa.h>

#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <string_view>

namespace ryle {
namespace {

// TAI - UTC at a UTC day, whole seconds since 1972 (before that UTC drifted: rounded).
std::optional<std::int64_t> leap_seconds(std::int64_t mjd, double day_fraction) {
  if (mjd < 37300 || mjd > 124593) return std::nullopt;  // 1961-01-01 .. 2200-01-01
  int year = 0, month = 0, day = 0;
  double fraction = 0, delta = 0;
  if (eraJd2cal(kMjdZero_jd, static_cast<double>(mjd), &year, &month, &day, &fraction) != 0)
    return std::nullopt;
  if (eraDat(year, month, day, day_fraction, &delta) < 0) return std::nullopt;
  return std::llround(delta);
}

std::optional<std::int64_t> mjd_of_date(int year, int month, int day) {
  double zero = 0, mjd = 0;
  if (year < 1900 || year > 2300 || eraCal2jd(year, month, day, &zero, &mjd) != 0)
    return std::nullopt;
  return static_cast<std::int64_t>(mjd);
}

// Reads digits one by one: no locale, no sign, no surprise.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}
  bool number(int min_digits, int max_digits, std::int64_t& value) {
    int digits = 0;
    value = 0;
    while (digits < max_digits && at_ < text_.size() &&
           std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      value = value * 10 + (text_[at_++] - '0');
      ++digits;
    }
    return digits >= min_digits;
  }
  bool one_of(std::string_view allowed) {
    if (at_ >= text_.size() || allowed.find(text_[at_]) == std::string_view::npos) return false;
    last_ = text_[at_++];
    return true;
  }
  char last() const { return last_; }
  bool at_end() const { return at_ == text_.size(); }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  char last_ = 0;
};

// Fraction digits to nanoseconds; digits beyond the ninth are dropped.
bool fraction_ns(Scanner& scan, std::int64_t& ns) {
  std::int64_t scale = kSecond_ns / 10, digit = 0;
  ns = 0;
  int count = 0;
  while (scan.number(1, 1, digit)) {
    ns += digit * scale;
    scale /= 10;
    ++count;
  }
  return count > 0;
}

}  // namespace

std::optional<std::int64_t> recording_tai_ns_from_unix(std::int64_t unix_s, std::int64_t ns) {
  const std::int64_t day = floor_divide(unix_s, kDay_s);
  if (day < -10000 || day > 100000) return std::nullopt;
  const std::int64_t second = unix_s - day * kDay_s;
  const auto leaps =
      leap_seconds(kUnixEpoch_mjd + day, static_cast<double>(second) / static_cast<double>(kDay_s));
  if (!leaps) return std::nullopt;
  return (unix_s + *leaps) * kSecond_ns + ns;
}

std::optional<std::int64_t> recording_tai_ns_from_mjd(std::int64_t mjd, std::int64_t ns_of_day) {
  // A leap second makes the day one second longer, no more.
  if (ns_of_day < 0 || ns_of_day >= (kDay_s + 1) * kSecond_ns) return std::nullopt;
  const auto leaps = leap_seconds(mjd, 0.0);
  if (!leaps) return std::nullopt;
  return ((mjd - kUnixEpoch_mjd) * kDay_s + *leaps) * kSecond_ns + ns_of_day;
}

std::optional<std::int64_t> recording_tai_ns_from_text(const std::string& text) {
  Scanner scan(text);
  std::int64_t year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, ns = 0;
  if (!scan.number(4, 4, year) || !scan.one_of("-/") || !scan.number(1, 2, month) ||
      !scan.one_of("-/") || !scan.number(1, 2, day) || !scan.one_of("T -_") ||
      !scan.number(1, 2, hour) || !scan.one_of(":") || !scan.number(1, 2, minute) ||
      !scan.one_of(":") || !scan.number(1, 2, second)) {
    return std::nullopt;
  }
  if (scan.one_of(".") && !fraction_ns(scan, ns)) return std::nullopt;
  std::int64_t offset_s = 0;
  if (scan.one_of("+-")) {
    const std::int64_t sign = scan.last() == '-' ? -1 : 1;
    std::int64_t offset_hour = 0, offset_minute = 0;
    if (!scan.number(2, 2, offset_hour)) return std::nullopt;
    scan.one_of(":");
    if (!scan.number(2, 2, offset_minute) || offset_hour > 18 || offset_minute > 59)
      return std::nullopt;
    offset_s = sign * (offset_hour * 3600 + offset_minute * 60);
  } else {
    scan.one_of("Zz");
  }
  if (!scan.at_end() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const auto mjd =
      mjd_of_date(static_cast<int>(year), static_cast<int>(month), static_cast<int>(day));
  if (!mjd) return std::nullopt;
  const std::int64_t of_day_s = hour * 3600 + minute * 60 + second;
  if (offset_s == 0) return recording_tai_ns_from_mjd(*mjd, of_day_s * kSecond_ns + ns);
  // With an offset the leap second is that of the UTC day, so go through POSIX seconds.
  return recording_tai_ns_from_unix((*mjd - kUnixEpoch_mjd) * kDay_s + of_day_s - offset_s, ns);
}

std::optional<std::int64_t> recording_tai_ns_from_vdif(int reference_epoch, std::int64_t seconds,
                                                       std::int64_t ns) {
  if (reference_epoch < 0 || reference_epoch > 63 || seconds < 0) return std::nullopt;
  const auto mjd = mjd_of_date(2000 + reference_epoch / 2, reference_epoch % 2 == 0 ? 1 : 7, 1);
  if (!mjd) return std::nullopt;
  const auto start = recording_tai_ns_from_mjd(*mjd, 0);
  if (!start) return std::nullopt;
  return *start + seconds * kSecond_ns + ns;
}

std::string recording_utc_text(std::int64_t tai_ns) {
  const std::int64_t tai_s = floor_divide(tai_ns, kSecond_ns);
  const std::int64_t day = floor_divide(tai_s, kDay_s);
  double utc1 = 0, utc2 = 0;
  int calendar[4] = {0, 0, 0, 0};
  eraTaiutc(kMjdZero_jd + static_cast<double>(kUnixEpoch_mjd + day),
            static_cast<double>(tai_s - day * kDay_s) / 86400.0, &utc1, &utc2);
  int year = 0, month = 0, date = 0;
  eraD2dtf("UTC", 0, utc1, utc2, &year, &month, &date, calendar);
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d", year, month, date,
                calendar[0], calendar[1], calendar[2]);
  return text.data();
}

}  // namespace ryle
