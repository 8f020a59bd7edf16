// SPDX-License-Identifier: BSD-3-Clause
// A map for looking at cells that are no map. Private to pipeline/grid/.
#pragma once
#include <array>
#include <cstdint>
#include <functional>

#include "ryle/io/image/cube_writer.hpp"
#include "ryle/io/map/map_projection.hpp"
#include "ryle/plot/picture.hpp"

namespace ryle::io {

/// Where n points lie: the mean of their directions and how far they reach from it in the plane of
/// the equal-area projection about it (ZEA). NaN where the directions cancel.
struct Region {
  double longitude_deg = 0, latitude_deg = 0;
  double half_width_deg = 0, half_height_deg = 0;
};
using Point = std::array<double, 3>;
Region region_of(std::int64_t n, const std::function<Point(std::int64_t)>& point);

/// An equal-area map about the region with pixels of `cell_deg`, or larger ones when those were
/// more than `maximum` a side.
MapProjection region_map(const Region& region, SkyFrame frame, double cell_deg,
                         std::int64_t maximum);
/// The whole sky by Mollweide, 800 x 400.
MapProjection whole_sky_map(SkyFrame frame);

/// What `value` says of the unit vector of every pixel of a map.
Panel sampled_panel(const MapProjection& map, const MapMetadata& metadata,
                    const std::function<float(const Point&)>& value);

}  // namespace ryle::io
