// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ryle/telescope/array.hpp"

namespace ryle {

class Dut1Table;

using Vector3 = std::array<double, 3>;

/// A direction on the celestial sphere, ICRS. @unit radians
struct SkyDirection {
  double ra_rad = 0;
  double dec_rad = 0;
};

/// TAI nanoseconds since 1970-01-01T00:00:00 TAI <-> UTC, the only place where leap seconds exist
/// (ERFA).
std::string utc_iso(std::int64_t tai_ns, int decimals = 3);  ///< "2026-11-21T19:14:02.000"
std::int64_t tai_ns_from_utc_iso(const std::string& iso);    ///< throws ConfigError
std::int64_t tai_ns_from_unix(std::int64_t unix_s,
                              std::int64_t ns = 0);  ///< POSIX (UTC without leap seconds)
std::int64_t tai_ns_from_mjd_utc(std::int64_t mjd, double seconds_of_day);
/// Two-part UTC Julian date for writers (sum = JD).
std::array<double, 2> utc_julian_date(std::int64_t tai_ns);
/// Modified Julian date UTC in seconds (MS TIME); a double of this size has steps of 9.5e-7 s.
double utc_mjd_s(std::int64_t tai_ns);

/// Earth orientation; dUT1 = 0 is a warning worth up to 13.5 arcsec (products.md 15). One number is
/// good for days; it is wrong by a second of time on the other side of a leap second. With a table
/// the number is not used.
struct EarthOrientation {
  double dut1_s = 0;
  std::shared_ptr<const Dut1Table> table{};
  /// UT1 - UTC at an instant. Throws ConfigError outside the table.
  double dut1_at(std::int64_t tai_ns) const;
};

/// Geocentric ITRF of the array reference and of an ENU offset. @unit metres
Vector3 itrf_of_reference(const ArrayLayout& array);
Vector3 itrf_of_enu(const ArrayLayout& array, const Vector3& enu_m);
Vector3 itrf_offset_of_enu(const ArrayLayout& array,
                           const Vector3& enu_m);  ///< without the reference

/// Local apparent sidereal time, radians in [0, 2 pi).
double local_sidereal_time_rad(const ArrayLayout& array, std::int64_t tai_ns,
                               const EarthOrientation& eo = {});

/// Unit vector (east, north, up) toward an ICRS direction at an instant: precession, nutation,
/// aberration, polar motion zero, no refraction (ERFA eraAtco13). And its inverse.
Vector3 enu_of_direction(const ArrayLayout& array, const SkyDirection& direction,
                         std::int64_t tai_ns, const EarthOrientation& eo = {});
/// The same for many directions at one instant: precession and nutation (1 ms) are computed once.
std::vector<Vector3> enu_of_directions(const ArrayLayout& array,
                                       std::span<const SkyDirection> directions,
                                       std::int64_t tai_ns, const EarthOrientation& eo = {});
SkyDirection direction_of_enu(const ArrayLayout& array, const Vector3& enu, std::int64_t tai_ns,
                              const EarthOrientation& eo = {});
/// ICRS direction of the zenith.
SkyDirection zenith(const ArrayLayout& array, std::int64_t tai_ns, const EarthOrientation& eo = {});
/// Astrometric geocentric direction of the Sun (its topocentric parallax, up to 8.8 arcsec, is left
/// out).
SkyDirection sun(std::int64_t tai_ns);

/// "zenith", "sun" or "RA_DEG,DEC_DEG" (ICRS) at an instant. Throws ConfigError that begins with
/// `what` for anything else.
SkyDirection named_direction(const std::string& text, const ArrayLayout& array, std::int64_t tai_ns,
                             const std::string& what, const EarthOrientation& eo = {});

/// Rows of the matrix that turns ENU into (l-axis, m-axis, s_0) of a phase centre: east and north
/// tangent to ICRS RA and Dec at the centre. uvw of a baseline = rows . (r_i - r_j).
std::array<Vector3, 3> uvw_axes(const ArrayLayout& array, const SkyDirection& phase_center,
                                std::int64_t tai_ns, const EarthOrientation& eo = {});

/// Tracking delay to apply to an input for a direction: d_p = r_p . s_0 / c - cable_p
/// (conventions.md 5).
double tracking_delay_s(const ArrayLayout& array, std::int64_t input, const Vector3& s0_enu,
                        double frequency_hz);

}  // namespace ryle
