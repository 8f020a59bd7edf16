// SPDX-License-Identifier: BSD-3-Clause
// Coordinates on pictures of maps. Private to plot/.
#pragma once
#include <string>
#include <vector>

#include "ryle/io/image/cube_writer.hpp"
#include "ryle/io/map/map_projection.hpp"
#include "ryle/plot/picture.hpp"

namespace ryle::plot {

/// "1h34m", "1h34m20s" (of 15 degrees an hour): as long as a step needs. @unit degrees
std::string hours_text(double longitude_deg, double step_deg);
/// "+30\u00b040'", as long as a step needs. @unit degrees
std::string degrees_text(double value_deg, double step_deg, bool sign);

/// Step of about `n` lines over a span of the sky: of round hours, minutes and seconds, or of round
/// degrees, arc minutes and arc seconds.
double graticule_step_deg(double span_deg, int n, bool hours);

/// Meridians and parallels with their labels, for a panel whose axis values are pixels of the map,
/// counted from 0. They are labelled where they meet the lower and the left edge, within the map
/// where they meet neither. The edge of a map of the whole sky (MOL, AIT, SFL, PAR) becomes the
/// outline of the panel.
void add_graticule(Panel& panel, const MapProjection& map);

/// Half-power contour of a beam at the middle of a map, in pixels about it; the position angle is
/// that of the major axis, north through east. @unit degrees, full widths
Panel::Curve beam_curve(const MapProjection& map, double major_deg, double minor_deg,
                        double position_angle_deg);

/// A map's plane with its coordinates and the beam of the metadata. Title, color label and color
/// map are the caller's.
Panel map_panel(const MapProjection& map, const std::vector<float>& plane,
                const MapMetadata& metadata);

}  // namespace ryle::plot
