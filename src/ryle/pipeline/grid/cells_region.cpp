// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/grid/cells_region.hpp"

#include <algorithm>
#include <cmath>

#include "ryle/core/units.hpp"
#include "ryle/pipeline/grid/sky_cells.hpp"

namespace ryle::io {

Region region_of(std::int64_t n, const std::function<Point(std::int64_t)>& point) {
  Point sum{};
  for (std::int64_t i = 0; i < n; ++i) {
    const Point p = point(i);
    for (std::size_t a = 0; a < 3; ++a) sum[a] += p[a];
  }
  const double length = std::hypot(sum[0], sum[1], sum[2]);
  if (!(length > 1e-6 * static_cast<double>(n))) return {kNaN, kNaN, 180, 180};
  const double lon = std::atan2(sum[1], sum[0]),
               lat = std::atan2(sum[2], std::hypot(sum[0], sum[1]));
  Region r{std::fmod(lon / kDegree_rad + 360, 360), lat / kDegree_rad, 0, 0};
  for (std::int64_t i = 0; i < n; ++i) {
    const Point p = point(i);
    const double east = -std::sin(lon) * p[0] + std::cos(lon) * p[1];
    const double inward = std::cos(lon) * p[0] + std::sin(lon) * p[1];
    const double north = -std::sin(lat) * inward + std::cos(lat) * p[2];
    const double out = std::cos(lat) * inward + std::sin(lat) * p[2];
    const double stretch = std::sqrt(2 / std::max(1e-12, 1 + out)) / kDegree_rad;  // ZEA
    r.half_width_deg = std::max(r.half_width_deg, std::abs(stretch * east));
    r.half_height_deg = std::max(r.half_height_deg, std::abs(stretch * north));
  }
  return r;
}

MapProjection region_map(const Region& region, SkyFrame frame, double cell_deg,
                         std::int64_t maximum) {
  const double widest = std::max(region.half_width_deg, region.half_height_deg);
  MapRequest request;
  request.projection = "ZEA";
  request.frame = frame;
  request.center_longitude_deg = region.longitude_deg;
  request.center_latitude_deg = region.latitude_deg;
  request.cell_deg = std::max(cell_deg, 2 * widest / static_cast<double>(maximum - 2));
  const auto pixels = [&](double half) {
    return 2 * static_cast<std::int64_t>(std::ceil(half / request.cell_deg + 0.5));
  };
  request.width = pixels(region.half_width_deg);
  request.height = pixels(region.half_height_deg);
  return MapProjection::make(request);
}

MapProjection whole_sky_map(SkyFrame frame) {
  MapRequest request;
  request.projection = "MOL";
  request.frame = frame;
  request.width = 800;
  request.height = 400;
  // The plane of Mollweide is 4 sqrt(2) wide.
  request.cell_deg = 4 * std::sqrt(2.0) / kDegree_rad / 800;
  return MapProjection::make(request);
}

Panel sampled_panel(const MapProjection& map, const MapMetadata& metadata,
                    const std::function<float(const Point&)>& value) {
  const auto n = static_cast<std::size_t>(map.width() * map.height());
  std::vector<double> longitude(n), latitude(n);
  map.directions(0, map.height(), longitude.data(), latitude.data());
  std::vector<float> plane(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double lon = longitude[i] * kDegree_rad, lat = latitude[i] * kDegree_rad;
    plane[i] =
        std::isnan(lon)
            ? kNaN
            : value({std::cos(lat) * std::cos(lon), std::cos(lat) * std::sin(lon), std::sin(lat)});
  }
  return map_cells(map)->picture(plane, metadata);
}

}  // namespace ryle::io
