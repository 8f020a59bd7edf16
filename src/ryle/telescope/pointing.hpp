// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ryle/core/time.hpp"
#include "ryle/telescope/array.hpp"
#include "ryle/telescope/geometry.hpp"

/// Where beams point. Tracking is stated by the frame, never inferred: RA 0 h is a coordinate. Time
/// is the data's: nothing here reads a clock.
namespace ryle {

enum class BeamFrame : std::uint8_t {
  icrs,         ///< RA, Dec: tracks the sky (or not, with freeze_at)
  apparent,     ///< RA, Dec of date (true equator and equinox): tracks the sky
  hadec,        ///< hour angle (positive west), Dec: stationary
  azel,         ///< azimuth from north through east, elevation: stationary
  ephemeris,    ///< table of time, azimuth, elevation: satellites, debris
  relative_to,  ///< a fixed offset from another beam, in that beam's frame
};

/// One row of an ephemeris. @unit tai_ns: nanoseconds TAI; azimuth_rad, elevation_rad
struct EphemerisRow {
  std::int64_t tai_ns = 0;
  double azimuth_rad = 0;
  double elevation_rad = 0;
};

/// Offset of a beam. Tangent: direction cosines (l, m) east and north on the plane that touches the
/// sky at the base direction. Spherical: (d_lon cos lat, d_lat); hadec: (d_ha, d_dec).
enum class OffsetKind : std::uint8_t { tangent, spherical };

/// @unit longitude_rad, latitude_rad: RA and Dec, hour angle and Dec, or azimuth and elevation
struct BeamPointing {
  std::string name;
  BeamFrame frame = BeamFrame::icrs;
  double longitude_rad = 0;
  double latitude_rad = 0;
  std::optional<std::int64_t> freeze_at_tai_ns;  ///< icrs, apparent: a drift scan from that instant
  std::vector<EphemerisRow> ephemeris;           ///< ascending in time, 4 rows at least
  std::string base;                              ///< relative_to: name of the other beam
  OffsetKind offset_kind = OffsetKind::spherical;
  double offset_x_rad = 0;  ///< tangent: l
  double offset_y_rad = 0;  ///< tangent: m
};

/// Directions of a set of beams at any instant of the data.
class BeamSky {
 public:
  /// Throws ConfigError: names twice or missing, circles of relative beams, impossible coordinates,
  /// short or unordered ephemerides, offsets that leave the sphere.
  BeamSky(const ArrayLayout& array, std::vector<BeamPointing> beams,
          const EarthOrientation& eo = {});
  ~BeamSky();
  BeamSky(BeamSky&&) noexcept;
  BeamSky& operator=(BeamSky&&) noexcept;

  /// Unit vectors (east, north, up) at an instant, one per beam, in their order: precession,
  /// nutation, aberration, light deflection, Earth rotation; polar motion zero, no refraction.
  /// Bodies of precession are computed once a minute, at whole minutes TAI, so that the bits depend
  /// on the instant alone; within 0.001 arcsec of the full chain. Throws ConfigError outside an
  /// ephemeris.
  std::vector<Vector3> directions_enu(std::int64_t tai_ns) const;
  /// Whether any direction changes with time at all.
  bool moves() const;
  std::int64_t n_beams() const { return static_cast<std::int64_t>(beams_.size()); }
  const std::vector<BeamPointing>& beams() const { return beams_; }

 private:
  struct Instant;
  Vector3 evaluate(std::size_t beam, Instant& instant) const;
  void resolve();

  ArrayLayout array_;
  std::vector<BeamPointing> beams_;  ///< relative ones resolved to their base's frame
  std::vector<Vector3> fixed_;       ///< of stationary beams
  std::vector<bool> is_fixed_;
  EarthOrientation eo_;
  mutable std::unique_ptr<Instant> cache_;  ///< of the last minute; one thread at a time
};

/// The instant at which a chunk's weights are evaluated: its middle.
std::int64_t middle_tai_ns(const SampleClock& clock, Tick first_tick, std::int64_t n_ticks);

enum class GridPattern : std::uint8_t { hex, square };
/// Offsets of `count` beams about a center, nearest first. @unit spacing_x_rad, spacing_y_rad:
/// distance of neighbors along x, and of rows along y times 2/sqrt(3) (hex: elliptical beams are
/// tiled by ellipses)
struct GridOffset {
  double x_rad = 0;
  double y_rad = 0;
};
std::vector<GridOffset> beam_grid(GridPattern pattern, std::int64_t count, double spacing_x_rad,
                                  double spacing_y_rad);
/// Beams "NAME/1" .. around an existing beam, in its frame.
std::vector<BeamPointing> grid_beams(const BeamPointing& around,
                                     const std::vector<GridOffset>& offsets, OffsetKind kind);

}  // namespace ryle
