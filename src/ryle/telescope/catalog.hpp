// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/telescope/geometry.hpp"

/// Named things on the sky: bright radio sources, Sun, Moon and planets, and how users write them.
namespace ryle {

/// "Cyg A", "Cas A", ... brightest first, then "Galactic centre": what pictures of the whole sky
/// mark. The flux calibrators ("3C 196") are known to body() and to the sky model, too.
std::vector<std::string> catalog_sources();
/// "Sun", "Moon", "Mercury", ..., "Neptune".
std::vector<std::string> catalog_bodies();

/// Where a source or body is, ICRS, ready for enu_of_direction(): the astrometric direction at the
/// instant, so that adding aberration gives the apparent place. Names as in the lists above or
/// aliases ("3C 405", "M87", "Crab", "Sgr A") or flux calibrators ("3C 286"); case, blanks, '-' and
/// '_' do not matter. Sources: positions of the radio centers (NED), 1 arcsec. Sun: ERFA Epv00,
/// 0.01 arcsec. Moon: Moon98 (Meeus), 10 arcsec, with its parallax (up to a degree) when `site` is
/// given, else from the center of the Earth. Planets: Plan94, better than 1 arcmin. Throws
/// ConfigError listing the known names.
SkyDirection body(std::string_view name, std::int64_t tai_ns, const ArrayLayout* site = nullptr);

/// One entry of a watch list.
struct WatchTarget {
  std::string name;                   ///< for products
  std::optional<SkyDirection> fixed;  ///< else a body: body(name, t)
  SkyDirection direction(std::int64_t tai_ns, const ArrayLayout* site = nullptr) const {
    return fixed ? *fixed : body(name, tai_ns, site);
  }
};

/// Reads a target: a name of the catalog ("Cyg A", "sun"), "RA,DEC" in degrees
/// ("299.868,+40.734"), or sexagesimal ("19:59:28.36,+40:44:02.1", hours and degrees), each
/// optionally as "NAME=RA,DEC". Throws ConfigError that says what is wrong.
WatchTarget parse_watch(std::string_view text);
/// Several, separated by ';' or line ends. Names twice are an error.
std::vector<WatchTarget> parse_watch_list(std::string_view text);

/// A target above the horizon, for pictures and light curves.
struct VisibleTarget {
  std::string name;
  Vector3 enu{};  ///< apparent direction: l east, m north, n up
};
/// Sources of the catalog, Sun, Moon and Jupiter above an elevation.
std::vector<VisibleTarget> visible_targets(const ArrayLayout& array, std::int64_t tai_ns,
                                           double min_elevation_rad = 0,
                                           const EarthOrientation& eo = {});

/// "12.5" or "12:34:56.7", with a sign, into `value` as it stands (not hours to degrees); false for
/// anything else.
bool parse_angle(std::string_view text, double& value, bool& sexagesimal);

/// ICRS direction of galactic longitude and latitude.
SkyDirection from_galactic(double longitude_rad, double latitude_rad);

}  // namespace ryle
