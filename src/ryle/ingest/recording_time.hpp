// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace ryle {

// Stamps of recordings to TAI nanoseconds since 1970-01-01T00:00:00 TAI. ingest/ may not use
// telescope/ (architecture.md 4), so it asks ERFA itself for the leap seconds; nothing here has a
// table of its own.

/// POSIX seconds (UTC without leap seconds) plus nanoseconds; nothing outside 1961..2200, where UTC
/// is not defined.
std::optional<std::int64_t> recording_tai_ns_from_unix(std::int64_t unix_s, std::int64_t ns = 0);
/// Modified Julian day (UTC) plus nanoseconds of the day.
std::optional<std::int64_t> recording_tai_ns_from_mjd(std::int64_t mjd, std::int64_t ns_of_day);
/// "2026-06-12T11:20:40+00:00", "2013-07-02-01:37:40.5", "2013-07-02 01:37:40Z": date, any of T,
/// space or '-', time, optional fraction and offset from UTC.
std::optional<std::int64_t> recording_tai_ns_from_text(const std::string& text);
/// VDIF: SI seconds (leap seconds included) after 2000-01-01 UTC + reference_epoch half-years.
std::optional<std::int64_t> recording_tai_ns_from_vdif(int reference_epoch, std::int64_t seconds,
                                                       std::int64_t ns = 0);
/// For warnings: "2014-06-16T05:56:07" to the second.
std::string recording_utc_text(std::int64_t tai_ns);

}  // namespace ryle
