// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/catalog.hpp"

#include <erfa.h>
#include <erfam.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/core/units.hpp"
#include "ryle/telescope/source_table.hpp"

namespace ryle {
namespace {

// Numbers of ERFA's Plan94; 0 Sun, -1 Moon.
struct Body {
  const char* name;
  int number;
};
constexpr Body kBodies[] = {{"Sun", 0},    {"Moon", -1},  {"Mercury", 1},
                            {"Venus", 2},  {"Mars", 4},   {"Jupiter", 5},
                            {"Saturn", 6}, {"Uranus", 7}, {"Neptune", 8}};

const Body* find_body(std::string_view name) {
  const std::string key = detail::folded_name(name);
  for (const Body& known : kBodies) {
    if (detail::folded_name(known.name) == key) return &known;
  }
  return nullptr;
}

[[noreturn]] void unknown(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& source : detail::tabulated_sources()) names.emplace_back(source.name);
  for (auto& n : catalog_bodies()) names.push_back(n);
  throw ConfigError("\"" + std::string(name) + "\" is no source Ryle knows; known: " +
                    comma_separated(names) + "; or give RA,DEC in degrees");
}

/// Barycentric place of a body in au at TT (for TDB: 2 ms) `tt` + `days`, from Earth and Sun of
/// Epv00.
Vector3 barycentric_au(int number, const std::array<double, 2>& tt, double days) {
  double from_sun[2][3], earth[2][3];
  if (eraEpv00(tt[0], tt[1] + days, from_sun, earth) < 0) {
    throw ConfigError("no positions of planets at Julian date " + std::to_string(tt[0] + tt[1]));
  }
  Vector3 place{};
  if (number == -1) {
    double moon[2][3];
    eraMoon98(tt[0], tt[1] + days, moon);
    for (int k = 0; k < 3; ++k) place[k] = earth[0][k] + moon[0][k];
    return place;
  }
  double planet[2][3] = {};
  if (number > 0 && eraPlan94(tt[0], tt[1] + days, number, planet) < 0) {
    throw ConfigError("no place of planet " + std::to_string(number));
  }
  for (int k = 0; k < 3; ++k) place[k] = earth[0][k] - from_sun[0][k] + planet[0][k];
  return place;
}

/// Barycentric place of the observer in au: the site, or the center of the Earth.
Vector3 observer_au(const std::array<double, 2>& utc, const std::array<double, 2>& tt,
                    const ArrayLayout* site) {
  double from_sun[2][3], earth[2][3];
  eraEpv00(tt[0], tt[1], from_sun, earth);
  Vector3 place{earth[0][0], earth[0][1], earth[0][2]};
  if (site == nullptr) return place;
  eraASTROM astrom{};
  double equation_of_origins = 0;
  if (eraApco13(utc[0], utc[1], 0, site->longitude_rad, site->latitude_rad, site->height_m, 0, 0, 0,
                0, 0, 0.55, &astrom, &equation_of_origins) < 0) {
    throw ConfigError("no Earth orientation at Julian date " + std::to_string(utc[0] + utc[1]));
  }
  return {astrom.eb[0], astrom.eb[1], astrom.eb[2]};
}

SkyDirection body_direction(int number, std::int64_t tai_ns, const ArrayLayout* site) {
  const auto utc = utc_julian_date(tai_ns);
  double tai[2];
  std::array<double, 2> tt{};
  if (eraUtctai(utc[0], utc[1], &tai[0], &tai[1]) < 0 ||
      eraTaitt(tai[0], tai[1], &tt[0], &tt[1]) < 0) {
    throw ConfigError("no places of planets for TAI " + std::to_string(tai_ns) + " ns");
  }
  const Vector3 here = observer_au(utc, tt, site);
  // Light left the body earlier: two steps leave less than 1e-9 of its motion. For the Moon this
  // undoes the aberration that enu_of_direction() adds for the Earth's own speed, 20 arcsec.
  double light_days = 0;
  double p[3] = {};
  for (int step = 0; step < 3; ++step) {
    const Vector3 there = barycentric_au(number, tt, -light_days);
    double distance2 = 0;
    for (int k = 0; k < 3; ++k) {
      p[k] = there[k] - here[k];
      distance2 += p[k] * p[k];
    }
    light_days = std::sqrt(distance2) * ERFA_AULT / ERFA_DAYSEC;
  }
  SkyDirection direction;
  eraC2s(p, &direction.ra_rad, &direction.dec_rad);
  direction.ra_rad = eraAnp(direction.ra_rad);
  return direction;
}

}  // namespace

bool parse_angle(std::string_view text, double& value, bool& sexagesimal) {
  std::string_view rest = trimmed(text);
  sexagesimal = rest.find(':') != std::string_view::npos;
  if (!sexagesimal) {
    if (!rest.empty() && rest[0] == '+') rest.remove_prefix(1);
    return parse_finite(rest, value);
  }
  const bool negative = !rest.empty() && rest[0] == '-';
  if (negative || (!rest.empty() && rest[0] == '+')) rest.remove_prefix(1);
  value = 0;
  double unit = 1;
  for (int part = 0; part < 3; ++part, unit /= 60) {
    const auto colon = rest.find(':');
    double number = 0;
    if (!parse_finite(rest.substr(0, colon), number) || number < 0 || (part > 0 && number >= 60))
      return false;
    value += number * unit;
    if (colon == std::string_view::npos) {
      if (negative) value = -value;
      return true;
    }
    rest.remove_prefix(colon + 1);
  }
  return false;  // a fourth part
}

std::vector<std::string> catalog_sources() {
  std::vector<std::string> names;
  for (const auto& source : detail::tabulated_sources()) {
    if (source.landmark) names.emplace_back(source.name);
  }
  return names;
}

std::vector<std::string> catalog_bodies() {
  std::vector<std::string> names;
  for (const Body& known : kBodies) names.emplace_back(known.name);
  return names;
}

SkyDirection body(std::string_view name, std::int64_t tai_ns, const ArrayLayout* site) {
  if (const auto* source = detail::find_tabulated(name)) {
    return {source->ra_deg * kDegree_rad, source->dec_deg * kDegree_rad};
  }
  const Body* known = find_body(name);
  if (known == nullptr) unknown(name);
  return body_direction(known->number, tai_ns, site);
}

WatchTarget parse_watch(std::string_view text) {
  std::string_view rest = trimmed(text);
  std::string_view name = rest;
  const auto equals = rest.find('=');
  if (equals != std::string_view::npos) {
    name = trimmed(rest.substr(0, equals));
    rest = trimmed(rest.substr(equals + 1));
  }
  const auto bad = [&](const std::string& why) {
    return ConfigError("watch target \"" + std::string(text) + "\": " + why +
                       "; write a name (Cyg A, sun), RA,DEC in degrees (299.868,40.734), "
                       "hh:mm:ss,dd:mm:ss, or NAME=RA,DEC");
  };
  if (name.empty()) throw bad("the name is empty");
  const auto comma = rest.find_first_of(",/");  // "/" where commas part the targets
  if (comma == std::string_view::npos) {
    if (equals != std::string_view::npos) throw bad("no comma between RA and DEC");
    if (const auto* source = detail::find_tabulated(rest)) {
      return {source->name,
              SkyDirection{source->ra_deg * kDegree_rad, source->dec_deg * kDegree_rad}};
    }
    if (const Body* known = find_body(rest)) return {known->name, std::nullopt};
    unknown(rest);
  }
  double ra = 0, dec = 0;
  bool ra_in_hours = false, dec_sexagesimal = false;
  if (!parse_angle(rest.substr(0, comma), ra, ra_in_hours)) throw bad("the RA is no number");
  if (!parse_angle(rest.substr(comma + 1), dec, dec_sexagesimal)) throw bad("the DEC is no number");
  if (ra_in_hours) ra *= 15;
  if (ra < -360 || ra > 360) throw bad("the RA lies beyond 360 degrees");
  if (dec < -90 || dec > 90) throw bad("the DEC lies beyond 90 degrees");
  return {std::string(name), SkyDirection{eraAnp(ra * kDegree_rad), dec * kDegree_rad}};
}

std::vector<WatchTarget> parse_watch_list(std::string_view text) {
  std::vector<WatchTarget> targets;
  while (!text.empty()) {
    const auto end = text.find_first_of(";\n");
    const std::string_view one = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (one.empty()) continue;
    targets.push_back(parse_watch(one));
    for (std::size_t k = 0; k + 1 < targets.size(); ++k) {
      if (targets[k].name == targets.back().name) {
        throw ConfigError("watch list: \"" + targets.back().name +
                          "\" is named twice; give one of them another name (NAME=RA,DEC)");
      }
    }
  }
  return targets;
}

std::vector<VisibleTarget> visible_targets(const ArrayLayout& array, std::int64_t tai_ns,
                                           double min_elevation_rad, const EarthOrientation& eo) {
  auto names = catalog_sources();
  for (const char* name : {"Sun", "Moon", "Jupiter"}) names.emplace_back(name);
  std::vector<SkyDirection> directions;
  for (const std::string& name : names) directions.push_back(body(name, tai_ns, &array));
  const auto enu = enu_of_directions(array, directions, tai_ns, eo);
  std::vector<VisibleTarget> visible;
  for (std::size_t k = 0; k < names.size(); ++k) {
    if (enu[k][2] > std::sin(min_elevation_rad)) visible.push_back({names[k], enu[k]});
  }
  return visible;
}

SkyDirection from_galactic(double longitude_rad, double latitude_rad) {
  SkyDirection direction;
  eraG2icrs(longitude_rad, latitude_rad, &direction.ra_rad, &direction.dec_rad);
  return direction;
}

}  // namespace ryle
