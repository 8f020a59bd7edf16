// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/plot/graticule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "ryle/core/units.hpp"

namespace ryle::plot {
namespace {

constexpr int kCurvePoints = 160;
constexpr double kNearPole_deg = 89.999;
constexpr double kEdge_deg = 180 - 1e-6;  // of a map of the whole sky, from its middle

// -180 .. 180
double wrapped_deg(double angle_deg) { return std::remainder(angle_deg, 360.0); }

int decimals_for(double step) {
  return std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 9);
}

/// Whole and sixtieth parts of a value that is counted in the least part a step needs.
std::string parts_text(double value, double step, const char* whole, const char* sixtieth,
                       const char* second) {
  const double second_step = step * 3600;
  const int decimals = second_step < 1 - 1e-9 ? decimals_for(second_step) : 0;
  const double scale = std::pow(10.0, decimals);
  const double ticks = std::round(value * 3600 * scale);
  const double hours = std::floor(ticks / (3600 * scale));
  const double minutes = std::floor((ticks - hours * 3600 * scale) / (60 * scale));
  const double seconds = (ticks - hours * 3600 * scale - minutes * 60 * scale) / scale;
  std::string text = fmt::format("{:.0f}{}", hours, whole);
  const auto multiple = [&](double of) {
    return std::abs(second_step / of - std::round(second_step / of)) < 1e-9;
  };
  if (multiple(3600)) return text;
  text += fmt::format("{:02.0f}{}", minutes, sixtieth);
  if (multiple(60)) return text;
  return text +
         fmt::format("{:0{}.{}f}{}", seconds, decimals > 0 ? 3 + decimals : 2, decimals, second);
}

struct Coverage {
  double middle_longitude_deg = 0;
  double west_deg = 0, east_deg = 0;  // from the middle
  double south_deg = 0, north_deg = 0;
};

bool on_map(const MapProjection& map, const std::array<double, 2>& pixel) {
  return pixel[0] >= -0.5 && pixel[1] >= -0.5 &&
         pixel[0] <= static_cast<double>(map.width()) - 0.5 &&
         pixel[1] <= static_cast<double>(map.height()) - 0.5;
}

/// Longitudes and latitudes that the map covers, from some of its rows.
std::optional<Coverage> coverage_of(const MapProjection& map) {
  const auto width = static_cast<std::size_t>(map.width());
  std::vector<double> longitude, latitude, lon(width), lat(width);
  const std::int64_t n_rows = std::min<std::int64_t>(map.height(), 33);
  for (std::int64_t k = 0; k < n_rows; ++k) {
    const std::int64_t row = n_rows > 1 ? k * (map.height() - 1) / (n_rows - 1) : 0;
    map.directions(row, 1, lon.data(), lat.data());
    const std::size_t step = std::max<std::size_t>(1, width / 64);
    for (std::size_t column = 0; column < width + step - 1; column += step) {
      const std::size_t x = std::min(column, width - 1);  // the last one, too
      if (std::isnan(lon[x])) continue;
      longitude.push_back(lon[x]);
      latitude.push_back(lat[x]);
    }
  }
  if (longitude.empty()) return std::nullopt;
  Coverage r;
  double east = 0, north = 0;
  for (std::size_t k = 0; k < longitude.size(); ++k) {
    const double weight = std::cos(latitude[k] * kDegree_rad);
    east += weight * std::cos(longitude[k] * kDegree_rad);
    north += weight * std::sin(longitude[k] * kDegree_rad);
  }
  r.middle_longitude_deg = std::atan2(north, east) / kDegree_rad;
  r.south_deg = *std::min_element(latitude.begin(), latitude.end());
  r.north_deg = *std::max_element(latitude.begin(), latitude.end());
  for (const double l : longitude) {
    const double d = wrapped_deg(l - r.middle_longitude_deg);
    r.west_deg = std::min(r.west_deg, d);
    r.east_deg = std::max(r.east_deg, d);
  }
  // From the middles of the outer pixels to beyond their edges.
  const double north_deg = std::max(std::abs(r.south_deg), std::abs(r.north_deg));
  const double step_deg = map.cell_deg() / std::min(1.0, map.cell_aspect());
  const double around_deg = step_deg / std::max(0.01, std::cos(north_deg * kDegree_rad));
  r.south_deg = std::max(-90.0, r.south_deg - step_deg);
  r.north_deg = std::min(90.0, r.north_deg + step_deg);
  r.west_deg = std::max(-180.0, r.west_deg - around_deg);
  r.east_deg = std::min(180.0, r.east_deg + around_deg);
  for (const double pole : {-1.0, 1.0}) {
    if (!on_map(map, map.pixel_of(r.middle_longitude_deg, pole * kNearPole_deg))) continue;
    (pole < 0 ? r.south_deg : r.north_deg) = pole * 90;
    r.west_deg = -180;
    r.east_deg = 180;
  }
  return r;
}

Panel::Point place_of(const MapProjection& map, double longitude_deg, double latitude_deg) {
  const auto pixel = map.pixel_of(longitude_deg, latitude_deg);
  return {pixel[0], pixel[1]};
}

Panel::Curve meridian(const MapProjection& map, double longitude_deg, double south_deg,
                      double north_deg) {
  Panel::Curve curve;
  for (int k = 0; k <= kCurvePoints; ++k)
    curve.push_back(
        place_of(map, longitude_deg, south_deg + (north_deg - south_deg) * k / kCurvePoints));
  return curve;
}

Panel::Curve parallel(const MapProjection& map, double latitude_deg, double from_deg,
                      double to_deg) {
  Panel::Curve curve;
  for (int k = 0; k <= kCurvePoints; ++k)
    curve.push_back(place_of(map, from_deg + (to_deg - from_deg) * k / kCurvePoints, latitude_deg));
  return curve;
}

/// Where a curve first crosses y = -0.5 (the lower edge), or x = -0.5 (the left edge), on the map.
std::optional<double> crossing(const MapProjection& map, const Panel::Curve& curve, bool lower) {
  const auto size = static_cast<double>(lower ? map.width() : map.height());
  for (std::size_t k = 1; k < curve.size(); ++k) {
    const auto &a = curve[k - 1], &b = curve[k];
    const double da = (lower ? a.y : a.x) + 0.5, db = (lower ? b.y : b.x) + 0.5;
    if (!(da * db <= 0) || da == db) continue;
    const double t = da / (da - db);
    const double at = lower ? a.x + t * (b.x - a.x) : a.y + t * (b.y - a.y);
    if (at >= -0.5 && at <= size - 0.5 && std::abs(da - db) < 0.5 * size) return at;
  }
  return std::nullopt;
}

/// The middle of the places of a curve that are on the map; none too near to its edge for a label.
std::optional<Panel::Point> middle_of(const MapProjection& map, const Panel::Curve& curve) {
  std::vector<Panel::Point> on;
  for (const auto& place : curve)
    if (on_map(map, {place.x, place.y})) on.push_back(place);
  if (on.size() < 3) return std::nullopt;
  const Panel::Point middle = on[on.size() / 2];
  const auto far_from_edges = [](double at, std::int64_t size) {
    const auto n = static_cast<double>(size);
    return at > 0.06 * n && at < 0.94 * n;
  };
  if (!far_from_edges(middle.x, map.width()) || !far_from_edges(middle.y, map.height()))
    return std::nullopt;
  return middle;
}

struct Words {
  bool hours = false;
  std::string longitude, latitude, both;
};

Words words_of(const MapProjection& map) {
  switch (map.frame()) {
    case SkyFrame::galactic:
      return {false, "galactic longitude", "galactic latitude", "galactic longitude and latitude"};
    case SkyFrame::fk5:
      return {true, "right ascension (J2000)", "declination (J2000)",
              "right ascension and declination (J2000)"};
    case SkyFrame::icrs:
      break;
  }
  return {true, "right ascension (ICRS)", "declination (ICRS)",
          "right ascension and declination (ICRS)"};
}

std::string longitude_text(double longitude_deg, double step_deg, bool hours) {
  double positive = std::fmod(longitude_deg, 360);
  if (positive < -1e-9) positive += 360;
  if (positive > 360 - 1e-9 || positive < 0) positive = 0;
  return hours ? hours_text(positive, step_deg) : degrees_text(positive, step_deg, false);
}

/// Longitude of the middle of a map of the whole sky whose edge is one meridian.
std::optional<double> whole_sky_middle_deg(const MapProjection& map) {
  const std::string code = map.projection();
  if (code != "MOL" && code != "AIT" && code != "SFL" && code != "PAR") return std::nullopt;
  const auto width = static_cast<std::size_t>(map.width());
  std::vector<double> lon(width), lat(width);
  map.directions(map.height() / 2, 1, lon.data(), lat.data());
  const double middle = lon[width / 2];
  if (std::isnan(middle) || std::abs(lat[width / 2]) > 2 * map.cell_deg()) return std::nullopt;
  for (const double side : {-kEdge_deg, kEdge_deg}) {
    const auto pixel = map.pixel_of(middle + side, 0);
    // The edge of the projection may be that of the map.
    if (!(pixel[0] > -2 && pixel[0] < static_cast<double>(width) + 1)) return std::nullopt;
  }
  return middle;
}

void add_whole_sky(Panel& panel, const MapProjection& map, double middle) {
  const Words words = words_of(map);
  panel.outline = meridian(map, middle + kEdge_deg, -90, 90);
  const auto other = meridian(map, middle - kEdge_deg, 90, -90);
  panel.outline.insert(panel.outline.end(), other.begin(), other.end());
  panel.outline.push_back(panel.outline.front());
  panel.own_ticks = true;
  panel.x_label = words.both + (map.projection() == "MOL" ? ", Mollweide" : "");
  for (int k = -5; k <= 6; ++k) {
    const double longitude = middle + 30 * k;
    if (k < 6) panel.graticule.push_back(meridian(map, longitude, -90, 90));
    if (k % 2 != 0 || k == 6) continue;
    const Panel::Point at = place_of(map, longitude, -4);
    panel.inner_labels.push_back({at.x, at.y, longitude_text(longitude, 30, words.hours)});
  }
  for (int latitude = -60; latitude <= 60; latitude += 30) {
    panel.graticule.push_back(parallel(map, latitude, middle - kEdge_deg, middle + kEdge_deg));
    const auto& ends = panel.graticule.back();
    const Panel::Point left = ends.front().x < ends.back().x ? ends.front() : ends.back();
    panel.outer_labels.push_back({left.x, left.y, degrees_text(latitude, 30, true)});
  }
}

}  // namespace

std::string hours_text(double longitude_deg, double step_deg) {
  return parts_text(longitude_deg / 15, step_deg / 15, "h", "m", "s");
}

std::string degrees_text(double value_deg, double step_deg, bool sign) {
  const std::string text = parts_text(std::abs(value_deg), step_deg, "\u00b0", "'", "\"");
  if (!sign || std::abs(value_deg) < 1e-12) return text;
  return (value_deg < 0 ? "\u2212" : "+") + text;
}

double graticule_step_deg(double span_deg, int n, bool hours) {
  const double unit_deg = hours ? 15 : 1;               // of the whole: hours, degrees
  const double wanted = 0.8 * span_deg / unit_deg / n;  // a few lines more are no harm
  const double second = 1.0 / 3600;
  if (wanted < second) {
    const double decade = std::pow(10.0, std::floor(std::log10(wanted / second) + 1e-9));
    for (const double step : {1.0, 2.0, 5.0, 10.0})
      if (step * decade * second >= wanted * (1 - 1e-9)) return step * decade * second * unit_deg;
  }
  for (const double part : {second, 60 * second})
    for (const double step : {1, 2, 5, 10, 20, 30})
      if (step * part >= wanted * (1 - 1e-9)) return step * part * unit_deg;
  for (const double step : {1, 2, 3, 6, 12})
    if (hours && step >= wanted * (1 - 1e-9)) return step * unit_deg;
  for (const double step : {1, 2, 5, 10, 15, 30, 45, 60})
    if (!hours && step >= wanted * (1 - 1e-9)) return step;
  return hours ? 180 : 90;
}

void add_graticule(Panel& panel, const MapProjection& map) {
  if (const auto middle = whole_sky_middle_deg(map)) return add_whole_sky(panel, map, *middle);
  const auto covered = coverage_of(map);
  const Words words = words_of(map);
  panel.x_label = words.longitude;
  panel.y_label = words.latitude;
  panel.own_ticks = true;
  if (!covered) return;
  const double span = covered->east_deg - covered->west_deg;
  const bool around = span > 300;
  const auto shape = static_cast<double>(map.width()) / static_cast<double>(map.height());
  // Labels need room: fewer lines along a short side.
  const int n_longitudes = shape < 0.25 ? 2 : shape < 0.6 ? 4 : 7;
  const int n_latitudes = shape > 8 ? 2 : shape > 4 ? 3 : 6;
  const double lon_step =
      graticule_step_deg(around ? 360 : span, around ? 12 : n_longitudes, words.hours);
  const double lat_step =
      graticule_step_deg(covered->north_deg - covered->south_deg, n_latitudes, false);
  const double south = std::max(-90.0, covered->south_deg - 0.1 * lat_step),
               north = std::min(90.0, covered->north_deg + lat_step * 0.1);
  const double west = around ? -180 : covered->west_deg - 0.1 * lon_step,
               east = around ? 180 : covered->east_deg + 0.1 * lon_step;
  const auto label = [&](const Panel::Curve& curve, const std::string& text, bool lower) {
    if (const auto at = crossing(map, curve, lower)) {
      (lower ? panel.x_ticks : panel.y_ticks).push_back({*at, text});
    } else if (const auto middle = middle_of(map, curve)) {
      panel.inner_labels.push_back({middle->x, middle->y, text});
    }
  };
  const double middle = covered->middle_longitude_deg;
  const auto first = static_cast<std::int64_t>(std::ceil((middle + west) / lon_step - 1e-9));
  for (std::int64_t k = first; static_cast<double>(k) * lon_step <= middle + east + 1e-9; ++k) {
    const double longitude = static_cast<double>(k) * lon_step;
    if (around && longitude > middle + east - 1e-6) break;  // the first again
    panel.graticule.push_back(meridian(map, longitude, south, north));
    label(panel.graticule.back(), longitude_text(longitude, lon_step, words.hours), true);
  }
  const auto lowest = static_cast<std::int64_t>(std::ceil(south / lat_step - 1e-9));
  for (std::int64_t k = lowest; static_cast<double>(k) * lat_step <= north + 1e-9; ++k) {
    const double latitude = static_cast<double>(k) * lat_step;
    if (std::abs(latitude) > 90 - 1e-9) continue;
    panel.graticule.push_back(parallel(map, latitude, middle + west, middle + east));
    label(panel.graticule.back(), degrees_text(latitude, lat_step, true), false);
  }
}

Panel::Curve beam_curve(const MapProjection& map, double major_deg, double minor_deg,
                        double position_angle_deg) {
  const auto width = static_cast<std::size_t>(map.width());
  std::vector<double> lon(width), lat(width);
  map.directions(map.height() / 2, 1, lon.data(), lat.data());
  const double lon0 = lon[width / 2], lat0 = lat[width / 2];
  if (std::isnan(lon0) || !(major_deg > 0) || std::abs(lat0) > kNearPole_deg) return {};
  const Panel::Point middle = place_of(map, lon0, lat0);
  const double angle_rad = position_angle_deg * kDegree_rad;
  // A small circle of the sky tells how pixels lie there; the beam is to scale by that, whatever
  // its size.
  const double step_deg = std::min(0.5 * map.cell_deg(), 0.1);
  const Panel::Point north = place_of(map, lon0, lat0 + step_deg);
  const Panel::Point east = place_of(map, lon0 + step_deg / std::cos(lat0 * kDegree_rad), lat0);
  Panel::Curve curve;
  for (int k = 0; k <= 72; ++k) {
    const double t = k * kPi / 36;
    const double along = 0.5 * major_deg * std::cos(t), across = 0.5 * minor_deg * std::sin(t);
    const double to_north = along * std::cos(angle_rad) - across * std::sin(angle_rad);
    const double to_east = along * std::sin(angle_rad) + across * std::cos(angle_rad);
    curve.push_back({(to_north * (north.x - middle.x) + to_east * (east.x - middle.x)) / step_deg,
                     (to_north * (north.y - middle.y) + to_east * (east.y - middle.y)) / step_deg});
  }
  return curve;
}

Panel map_panel(const MapProjection& map, const std::vector<float>& plane,
                const MapMetadata& metadata) {
  Panel panel;
  panel.values = plane;
  panel.n_rows = map.height();
  panel.n_columns = map.width();
  panel.first_row_at_top = false;
  panel.cell_aspect = map.cell_aspect();
  // Axis values are pixels: what they are on the sky is the graticule's to say.
  panel.x_min = panel.y_min = -0.5;
  panel.x_max = static_cast<double>(map.width()) - 0.5;
  panel.y_max = static_cast<double>(map.height()) - 0.5;
  add_graticule(panel, map);
  const double minor_deg =
      metadata.beam_minor_deg > 0 ? metadata.beam_minor_deg : metadata.beam_fwhm_deg;
  if (metadata.beam_fwhm_deg > 0)
    panel.beam =
        beam_curve(map, metadata.beam_fwhm_deg, minor_deg, metadata.beam_position_angle_deg);
  return panel;
}

}  // namespace ryle::plot
