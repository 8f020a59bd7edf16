// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/pointing.hpp"

#include <erfa.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"

namespace ryle {
namespace {

constexpr std::int64_t kMinute_ns = 60'000'000'000;

Vector3 enu_of_azel(double azimuth_rad, double elevation_rad) {
  return {std::cos(elevation_rad) * std::sin(azimuth_rad),
          std::cos(elevation_rad) * std::cos(azimuth_rad), std::sin(elevation_rad)};
}

// Moves a pair of spherical coordinates by an offset. False when there is no such direction.
bool shift(BeamFrame frame, OffsetKind kind, double x, double y, double& longitude_rad,
           double& latitude_rad) {
  if (x == 0 && y == 0) return true;
  const double c = std::cos(latitude_rad), s = std::sin(latitude_rad);
  if (kind == OffsetKind::tangent) {
    const double squared = 1 - x * x - y * y;
    if (!(squared > 0)) return false;
    const double n = std::sqrt(squared);
    longitude_rad += std::atan2(x, n * c - y * s);
    latitude_rad = std::asin(std::clamp(y * c + n * s, -1.0, 1.0));
    return true;
  }
  if (frame != BeamFrame::hadec) {
    if (c < 1e-9) return false;  // at the pole no longitude is a step of x
    x /= c;
  }
  longitude_rad += x;
  latitude_rad += y;
  return std::fabs(latitude_rad) <= kPi / 2;
}

std::string beam_named(const std::string& name) { return "beam \"" + name + "\""; }

void check_coordinates(const BeamPointing& beam) {
  if (!std::isfinite(beam.longitude_rad) || !std::isfinite(beam.latitude_rad) ||
      std::fabs(beam.latitude_rad) > kPi / 2 || !std::isfinite(beam.offset_x_rad) ||
      !std::isfinite(beam.offset_y_rad)) {
    throw ConfigError(beam_named(beam.name) +
                      ": its coordinates must be finite, Dec or elevation within 90 deg");
  }
  const bool sky = beam.frame == BeamFrame::icrs || beam.frame == BeamFrame::apparent;
  if (beam.freeze_at_tai_ns && !sky)
    throw ConfigError(beam_named(beam.name) + ": only icrs and apparent directions can be frozen");
  if (beam.frame != BeamFrame::ephemeris) return;
  if (beam.ephemeris.size() < 4)
    throw ConfigError(beam_named(beam.name) + ": an ephemeris has 4 rows at least, this one " +
                      std::to_string(beam.ephemeris.size()));
  for (std::size_t k = 0; k < beam.ephemeris.size(); ++k) {
    const EphemerisRow& row = beam.ephemeris[k];
    if (k > 0 && row.tai_ns <= beam.ephemeris[k - 1].tai_ns)
      throw ConfigError(beam_named(beam.name) + ": ephemeris row " + std::to_string(k) +
                        " is not after the one before it");
    if (!std::isfinite(row.azimuth_rad) || !(std::fabs(row.elevation_rad) <= kPi / 2))
      throw ConfigError(beam_named(beam.name) + ": ephemeris row " + std::to_string(k) +
                        " is no direction");
  }
}

// Cubic through the four nearest rows, on vectors (azimuth may pass north), made a unit vector.
Vector3 interpolate(const BeamPointing& beam, std::int64_t tai_ns) {
  const auto& rows = beam.ephemeris;
  if (tai_ns < rows.front().tai_ns || tai_ns > rows.back().tai_ns) {
    throw ConfigError(beam_named(beam.name) + ": its ephemeris runs from " +
                      utc_iso(rows.front().tai_ns) + " to " + utc_iso(rows.back().tai_ns) +
                      " UTC, not at " + utc_iso(tai_ns));
  }
  const auto after =
      std::upper_bound(rows.begin(), rows.end(), tai_ns,
                       [](std::int64_t t, const EphemerisRow& row) { return t < row.tai_ns; });
  const auto last = static_cast<std::int64_t>(rows.size()) - 4;
  const std::int64_t first = std::clamp<std::int64_t>((after - rows.begin()) - 2, 0, last);
  Vector3 sum{};
  for (std::int64_t i = first; i < first + 4; ++i) {
    const EphemerisRow& row = rows[i];
    double factor = 1;
    for (std::int64_t j = first; j < first + 4; ++j) {
      if (j == i) continue;
      const std::int64_t other_ns = rows[j].tai_ns;
      factor *= static_cast<double>(tai_ns - other_ns) / static_cast<double>(row.tai_ns - other_ns);
    }
    const Vector3 enu = enu_of_azel(row.azimuth_rad, row.elevation_rad);
    for (int k = 0; k < 3; ++k) sum[k] += factor * enu[k];
  }
  const double length = std::sqrt(sum[0] * sum[0] + sum[1] * sum[1] + sum[2] * sum[2]);
  for (double& part : sum) part /= length;
  return sum;
}

}  // namespace

/// What is the same for all beams at one instant.
struct BeamSky::Instant {
  std::int64_t tai_ns = 0;
  std::int64_t minute = std::numeric_limits<std::int64_t>::min();
  bool ready = false;
  eraASTROM astrom{};
  double equation_of_origins = 0;

  void prepare(const ArrayLayout& array, const EarthOrientation& eo) {
    if (ready) return;
    const std::int64_t now = tai_ns / kMinute_ns - (tai_ns % kMinute_ns < 0 ? 1 : 0);
    if (now != minute) {
      const auto utc = utc_julian_date(now * kMinute_ns);
      if (eraApco13(utc[0], utc[1], eo.dut1_at(now * kMinute_ns), array.longitude_rad,
                    array.latitude_rad, array.height_m, 0.0, 0.0, 0.0, 0.0, 0.0, 0.55, &astrom,
                    &equation_of_origins) < 0)
        throw ConfigError("no Earth orientation for " + utc_iso(tai_ns) +
                          " UTC; the date lies outside the calendar");
      minute = now;
    }
    const auto utc = utc_julian_date(tai_ns);
    double ut1[2];
    if (eraUtcut1(utc[0], utc[1], eo.dut1_at(tai_ns), &ut1[0], &ut1[1]) < 0)
      throw ConfigError("no UT1 for " + utc_iso(tai_ns) + " UTC");
    eraAper13(ut1[0], ut1[1], &astrom);
    ready = true;
  }

  Vector3 enu_of_cirs(double ra_rad, double dec_rad) {
    double azimuth = 0, zenith_distance = 0, ha = 0, dec = 0, ra = 0;
    eraAtioq(ra_rad, dec_rad, &astrom, &azimuth, &zenith_distance, &ha, &dec, &ra);
    return {std::sin(azimuth) * std::sin(zenith_distance),
            std::cos(azimuth) * std::sin(zenith_distance), std::cos(zenith_distance)};
  }
};

BeamSky::BeamSky(const ArrayLayout& array, std::vector<BeamPointing> beams,
                 const EarthOrientation& eo)
    : array_(array), beams_(std::move(beams)), eo_(eo), cache_(std::make_unique<Instant>()) {
  resolve();
  fixed_.resize(beams_.size());
  is_fixed_.resize(beams_.size());
  for (std::size_t k = 0; k < beams_.size(); ++k) {
    const BeamPointing& beam = beams_[k];
    const bool still = beam.frame == BeamFrame::hadec || beam.frame == BeamFrame::azel ||
                       beam.freeze_at_tai_ns.has_value();
    if (!still) continue;
    Instant instant;
    instant.tai_ns = beam.freeze_at_tai_ns.value_or(0);
    fixed_[k] = evaluate(k, instant);
    is_fixed_[k] = true;
  }
}
BeamSky::~BeamSky() = default;
BeamSky::BeamSky(BeamSky&&) noexcept = default;
BeamSky& BeamSky::operator=(BeamSky&&) noexcept = default;

// Gives every relative beam the frame and coordinates of its base; offsets in one frame add up.
void BeamSky::resolve() {
  std::map<std::string, std::size_t> by_name;
  for (std::size_t k = 0; k < beams_.size(); ++k) {
    if (!by_name.emplace(beams_[k].name, k).second)
      throw ConfigError(beam_named(beams_[k].name) + " is named twice");
  }
  const std::vector<BeamPointing> given = beams_;
  for (std::size_t k = 0; k < beams_.size(); ++k) {
    std::vector<std::size_t> chain{k};
    while (given[chain.back()].frame == BeamFrame::relative_to) {
      const BeamPointing& beam = given[chain.back()];
      const auto base = by_name.find(beam.base);
      if (base == by_name.end())
        throw ConfigError(beam_named(beam.name) + " is relative to \"" + beam.base +
                          "\", which is no beam");
      chain.push_back(base->second);
      if (chain.size() > given.size())
        throw ConfigError(beam_named(beam.name) + " is relative to itself");
    }
    BeamPointing resolved = given[chain.back()];
    check_coordinates(resolved);
    resolved.name = given[k].name;
    // An ephemeris gets its offsets when it is evaluated: they are kept as a sum.
    const bool later = resolved.frame == BeamFrame::ephemeris;
    if (later) resolved.offset_x_rad = resolved.offset_y_rad = 0;
    for (auto link = chain.rbegin(); link != chain.rend(); ++link) {
      const BeamPointing& beam = given[*link];
      if (!std::isfinite(beam.offset_x_rad) || !std::isfinite(beam.offset_y_rad))
        throw ConfigError(beam_named(beam.name) + ": its offset must be finite");
      if (later) {
        if (beam.offset_kind == OffsetKind::tangent &&
            (beam.offset_x_rad != 0 || beam.offset_y_rad != 0))
          throw ConfigError(beam_named(beam.name) +
                            ": offsets from an ephemeris are (d_az cos el, d_el)");
        resolved.offset_x_rad += beam.offset_x_rad;
        resolved.offset_y_rad += beam.offset_y_rad;
      } else if (!shift(resolved.frame, beam.offset_kind, beam.offset_x_rad, beam.offset_y_rad,
                        resolved.longitude_rad, resolved.latitude_rad)) {
        throw ConfigError(beam_named(beam.name) + ": its offset leaves the sphere");
      }
    }
    if (!later) resolved.offset_x_rad = resolved.offset_y_rad = 0;
    beams_[k] = resolved;
  }
}

Vector3 BeamSky::evaluate(std::size_t index, Instant& instant) const {
  const BeamPointing& beam = beams_[index];
  switch (beam.frame) {
    case BeamFrame::icrs: {
      instant.prepare(array_, eo_);
      double ra = 0, dec = 0;
      eraAtciqz(beam.longitude_rad, beam.latitude_rad, &instant.astrom, &ra, &dec);
      return instant.enu_of_cirs(ra, dec);
    }
    case BeamFrame::apparent:
      instant.prepare(array_, eo_);
      // HA = GST - RA of date = ERA - RA of CIRS, equation of origins = ERA - GST
      return instant.enu_of_cirs(beam.longitude_rad + instant.equation_of_origins,
                                 beam.latitude_rad);
    case BeamFrame::hadec: {
      double azimuth = 0, elevation = 0;
      eraHd2ae(beam.longitude_rad, beam.latitude_rad, array_.latitude_rad, &azimuth, &elevation);
      return enu_of_azel(azimuth, elevation);
    }
    case BeamFrame::azel:
      return enu_of_azel(beam.longitude_rad, beam.latitude_rad);
    case BeamFrame::ephemeris: {
      const Vector3 enu = interpolate(beam, instant.tai_ns);
      if (beam.offset_x_rad == 0 && beam.offset_y_rad == 0) return enu;
      double azimuth = std::atan2(enu[0], enu[1]);
      double elevation = std::atan2(enu[2], std::hypot(enu[0], enu[1]));
      if (!shift(BeamFrame::azel, OffsetKind::spherical, beam.offset_x_rad, beam.offset_y_rad,
                 azimuth, elevation))
        throw ConfigError(beam_named(beam.name) + ": its offset leaves the sphere at " +
                          utc_iso(instant.tai_ns) + " UTC");
      return enu_of_azel(azimuth, elevation);
    }
    case BeamFrame::relative_to:
      break;  // resolved
  }
  return {0, 0, 1};
}

std::vector<Vector3> BeamSky::directions_enu(std::int64_t tai_ns) const {
  if (cache_->tai_ns != tai_ns) {
    cache_->tai_ns = tai_ns;
    cache_->ready = false;
  }
  std::vector<Vector3> enu(beams_.size());
  for (std::size_t k = 0; k < beams_.size(); ++k)
    enu[k] = is_fixed_[k] ? fixed_[k] : evaluate(k, *cache_);
  return enu;
}

bool BeamSky::moves() const {
  return std::find(is_fixed_.begin(), is_fixed_.end(), false) != is_fixed_.end();
}

std::int64_t middle_tai_ns(const SampleClock& clock, Tick first_tick, std::int64_t n_ticks) {
  return clock.tai_ns(first_tick + n_ticks / 2);
}

std::vector<GridOffset> beam_grid(GridPattern pattern, std::int64_t count, double spacing_x_rad,
                                  double spacing_y_rad) {
  if (count < 1 || !(spacing_x_rad > 0) || !(spacing_y_rad > 0))
    throw ConfigError("beam grid: " + std::to_string(count) +
                      " beams at such a spacing; both must be positive");
  // In units of the spacing: rings enough to hold all of them.
  struct Point {
    double x, y, radius, angle;
  };
  const auto rings =
      static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(count)))) + 1;
  const bool hex = pattern == GridPattern::hex;
  std::vector<Point> points;
  for (std::int64_t row = -rings; row <= rings; ++row) {
    for (std::int64_t column = -rings; column <= rings; ++column) {
      const double x = static_cast<double>(column) + (hex && row % 2 != 0 ? 0.5 : 0.0);
      const double y = static_cast<double>(row) * (hex ? std::sqrt(0.75) : 1.0);
      // Rounded, so that equal radii compare equal and the order is that of the angles.
      const double radius = std::rint(1e9 * (x * x + y * y));
      points.push_back({x, y, radius, std::atan2(y, x)});
    }
  }
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return a.radius != b.radius ? a.radius < b.radius : a.angle < b.angle;
  });
  std::vector<GridOffset> offsets;
  for (std::int64_t k = 0; k < count; ++k) {
    const Point& p = points[k];
    offsets.push_back({p.x * spacing_x_rad, p.y * spacing_y_rad});
  }
  return offsets;
}

std::vector<BeamPointing> grid_beams(const BeamPointing& around,
                                     const std::vector<GridOffset>& offsets, OffsetKind kind) {
  std::vector<BeamPointing> beams;
  for (std::size_t k = 0; k < offsets.size(); ++k) {
    BeamPointing beam;
    beam.name = around.name + "/" + std::to_string(k + 1);
    beam.frame = BeamFrame::relative_to;
    beam.base = around.name;
    beam.offset_kind = kind;
    beam.offset_x_rad = offsets[k].x_rad;
    beam.offset_y_rad = offsets[k].y_rad;
    beams.push_back(beam);
  }
  return beams;
}

}  // namespace ryle
