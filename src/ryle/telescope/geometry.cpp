// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/geometry.hpp"

#include <erfa.h>
#include <erfam.h>

#include <cmath>
#include <cstdio>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"

namespace ryle {
namespace {

double dot(const Vector3& a, const Vector3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

Vector3 unit(const Vector3& a) {
  const double length = std::sqrt(dot(a, a));
  return {a[0] / length, a[1] / length, a[2] / length};
}

Vector3 cross(const Vector3& a, const Vector3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

/// Star-independent parameters of an instant and place: polar motion and refraction are zero.
eraASTROM astrometry(const ArrayLayout& array, std::int64_t tai_ns, const EarthOrientation& eo) {
  const auto utc = utc_julian_date(tai_ns);
  eraASTROM astrom{};
  double equation_of_origins = 0;
  const int status =
      eraApco13(utc[0], utc[1], eo.dut1_at(tai_ns), array.longitude_rad, array.latitude_rad,
                array.height_m, 0.0, 0.0, 0.0, 0.0, 0.0, 0.55, &astrom, &equation_of_origins);
  if (status < 0) {
    throw ConfigError("no Earth orientation for TAI " + std::to_string(tai_ns) +
                      " ns; the date lies outside the calendar");
  }
  return astrom;
}

Vector3 apparent_enu(eraASTROM& astrom, const SkyDirection& direction) {
  double ra_cirs = 0, dec_cirs = 0, azimuth = 0, zenith_distance = 0, ha = 0, dec = 0, ra = 0;
  eraAtciqz(direction.ra_rad, direction.dec_rad, &astrom, &ra_cirs, &dec_cirs);
  eraAtioq(ra_cirs, dec_cirs, &astrom, &azimuth, &zenith_distance, &ha, &dec, &ra);
  return {std::sin(azimuth) * std::sin(zenith_distance),
          std::cos(azimuth) * std::sin(zenith_distance), std::cos(zenith_distance)};
}

/// The rotation ICRS -> east, north, up of the instant, without aberration and light deflection:
/// bias-precession-nutation, Earth rotation with longitude, latitude (as eraAtciq and eraAtioq
/// chain them).
Vector3 rotated_enu(const eraASTROM& astrom, const Vector3& icrs) {
  Vector3 cirs{};
  for (int row = 0; row < 3; ++row) {
    cirs[row] =
        astrom.bpn[row][0] * icrs[0] + astrom.bpn[row][1] * icrs[1] + astrom.bpn[row][2] * icrs[2];
  }
  const double c = std::cos(astrom.eral), s = std::sin(astrom.eral);
  const double x = c * cirs[0] + s * cirs[1];  // toward the meridian, in the equator
  const double y = c * cirs[1] - s * cirs[0];  // east
  const double z = cirs[2];                    // pole
  return {y, astrom.cphi * z - astrom.sphi * x, astrom.cphi * x + astrom.sphi * z};
}

/// The shortest rotation that takes unit vector `from` to `to`, applied to v (Rodrigues).
Vector3 transport(const Vector3& from, const Vector3& to, const Vector3& v) {
  const Vector3 axis = cross(from, to);
  const double cosine = dot(from, to);
  const Vector3 turned = cross(axis, v);
  const double along = dot(axis, v) / (1 + cosine);
  Vector3 out{};
  for (int k = 0; k < 3; ++k) out[k] = cosine * v[k] + turned[k] + along * axis[k];
  return out;
}

}  // namespace

Vector3 itrf_of_reference(const ArrayLayout& array) {
  Vector3 xyz{};
  if (eraGd2gc(ERFA_WGS84, array.longitude_rad, array.latitude_rad, array.height_m, xyz.data()) !=
      0) {
    throw ConfigError("the array reference is not a place on the WGS84 ellipsoid");
  }
  return xyz;
}

Vector3 itrf_offset_of_enu(const ArrayLayout& array, const Vector3& enu_m) {
  const double sin_lat = std::sin(array.latitude_rad), cos_lat = std::cos(array.latitude_rad);
  const double sin_lon = std::sin(array.longitude_rad), cos_lon = std::cos(array.longitude_rad);
  const double radial = cos_lat * enu_m[2] - sin_lat * enu_m[1];  // away from the axis
  return {cos_lon * radial - sin_lon * enu_m[0], sin_lon * radial + cos_lon * enu_m[0],
          cos_lat * enu_m[1] + sin_lat * enu_m[2]};
}

Vector3 itrf_of_enu(const ArrayLayout& array, const Vector3& enu_m) {
  const Vector3 reference = itrf_of_reference(array);
  const Vector3 offset = itrf_offset_of_enu(array, enu_m);
  return {reference[0] + offset[0], reference[1] + offset[1], reference[2] + offset[2]};
}

double local_sidereal_time_rad(const ArrayLayout& array, std::int64_t tai_ns,
                               const EarthOrientation& eo) {
  const auto utc = utc_julian_date(tai_ns);
  double ut1[2], tai[2], tt[2];
  if (eraUtcut1(utc[0], utc[1], eo.dut1_at(tai_ns), &ut1[0], &ut1[1]) < 0 ||
      eraUtctai(utc[0], utc[1], &tai[0], &tai[1]) < 0 ||
      eraTaitt(tai[0], tai[1], &tt[0], &tt[1]) < 0) {
    throw ConfigError("no sidereal time for TAI " + std::to_string(tai_ns) + " ns");
  }
  return eraAnp(eraGst06a(ut1[0], ut1[1], tt[0], tt[1]) + array.longitude_rad);
}

Vector3 enu_of_direction(const ArrayLayout& array, const SkyDirection& direction,
                         std::int64_t tai_ns, const EarthOrientation& eo) {
  eraASTROM astrom = astrometry(array, tai_ns, eo);
  return apparent_enu(astrom, direction);
}

std::vector<Vector3> enu_of_directions(const ArrayLayout& array,
                                       std::span<const SkyDirection> directions,
                                       std::int64_t tai_ns, const EarthOrientation& eo) {
  eraASTROM astrom = astrometry(array, tai_ns, eo);
  std::vector<Vector3> enu;
  enu.reserve(directions.size());
  for (const SkyDirection& direction : directions) enu.push_back(apparent_enu(astrom, direction));
  return enu;
}

SkyDirection direction_of_enu(const ArrayLayout& array, const Vector3& enu, std::int64_t tai_ns,
                              const EarthOrientation& eo) {
  eraASTROM astrom = astrometry(array, tai_ns, eo);
  const double azimuth = std::atan2(enu[0], enu[1]);
  const double zenith_distance = std::atan2(std::hypot(enu[0], enu[1]), enu[2]);
  double ra_cirs = 0, dec_cirs = 0;
  SkyDirection direction;
  eraAtoiq("A", azimuth, zenith_distance, &astrom, &ra_cirs, &dec_cirs);
  eraAticq(ra_cirs, dec_cirs, &astrom, &direction.ra_rad, &direction.dec_rad);
  return direction;
}

SkyDirection zenith(const ArrayLayout& array, std::int64_t tai_ns, const EarthOrientation& eo) {
  return direction_of_enu(array, {0, 0, 1}, tai_ns, eo);
}

SkyDirection sun(std::int64_t tai_ns) {
  const auto utc = utc_julian_date(tai_ns);
  double tai[2], tt[2];
  if (eraUtctai(utc[0], utc[1], &tai[0], &tai[1]) < 0 ||
      eraTaitt(tai[0], tai[1], &tt[0], &tt[1]) < 0) {
    throw ConfigError("no solar position for TAI " + std::to_string(tai_ns) + " ns");
  }
  // TT for TDB (2 ms apart). The Sun moves 6 km about the barycentre in the 499 s of light time:
  // 0.01 arcsec.
  double heliocentric[2][3], barycentric[2][3];
  eraEpv00(tt[0], tt[1], heliocentric, barycentric);
  double toward_sun[3] = {-heliocentric[0][0], -heliocentric[0][1], -heliocentric[0][2]};
  SkyDirection direction;
  eraC2s(toward_sun, &direction.ra_rad, &direction.dec_rad);
  direction.ra_rad = eraAnp(direction.ra_rad);
  return direction;
}

SkyDirection named_direction(const std::string& text, const ArrayLayout& array, std::int64_t tai_ns,
                             const std::string& what, const EarthOrientation& eo) {
  if (text == "zenith") return zenith(array, tai_ns, eo);
  if (text == "sun") return sun(tai_ns);
  double ra_deg = 0;
  double dec_deg = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%lf,%lf%c", &ra_deg, &dec_deg, &rest) != 2 ||
      !(std::abs(dec_deg) <= 90) || !(ra_deg >= 0 && ra_deg < 360)) {
    throw ConfigError(what + " = \"" + text +
                      "\": must be zenith, sun or RA_DEG,DEC_DEG such as 83.633,22.014");
  }
  return {ra_deg * kDegree_rad, dec_deg * kDegree_rad};
}

std::array<Vector3, 3> uvw_axes(const ArrayLayout& array, const SkyDirection& phase_center,
                                std::int64_t tai_ns, const EarthOrientation& eo) {
  eraASTROM astrom = astrometry(array, tai_ns, eo);
  const Vector3 s0 = apparent_enu(astrom, phase_center);
  const double sin_ra = std::sin(phase_center.ra_rad), cos_ra = std::cos(phase_center.ra_rad);
  const double sin_dec = std::sin(phase_center.dec_rad), cos_dec = std::cos(phase_center.dec_rad);
  const Vector3 geometric =
      unit(rotated_enu(astrom, {cos_dec * cos_ra, cos_dec * sin_ra, sin_dec}));
  const Vector3 east = rotated_enu(astrom, {-sin_ra, cos_ra, 0});
  const Vector3 north = rotated_enu(astrom, {-sin_dec * cos_ra, -sin_dec * sin_ra, cos_dec});
  // Aberration and deflection move a direction along a great circle and keep the angles to it (a
  // boost is conformal about its apex): the tangent axes are carried along by the shortest
  // rotation.
  return {transport(geometric, s0, east), transport(geometric, s0, north), s0};
}

double tracking_delay_s(const ArrayLayout& array, std::int64_t input, const Vector3& s0_enu,
                        double frequency_hz) {
  RYLE_ASSERT(input >= 0 && input < array.n_inputs());
  const ArrayInput& path = array.inputs[input];
  const Vector3& position = array.antennas[path.antenna].enu_m;
  return dot(position, s0_enu) / kSpeedOfLight_m_per_s - cable_delay_s(path, frequency_hz);
}

}  // namespace ryle
