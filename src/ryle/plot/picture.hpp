// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ryle {

/// Color maps: viridis and inferno for amplitudes, twilight (cyclic) for phases, gray, polar for
/// signed values (blue below, dark at the middle, orange above).
enum class ColorMap : std::uint8_t { viridis, inferno, twilight, gray, polar };

/// A labelled heat map, or a chart where `series` has lines. @shape values [row][column]; NaN is
/// drawn in the background color
struct Panel {
  /// A place in axis values.
  struct Point {
    double x = 0, y = 0;
  };
  using Curve = std::vector<Point>;
  struct Mark {
    double x = 0, y = 0;
    std::string label;
  };
  struct Tick {
    double at = 0;
    std::string label;
  };
  /// Values of a chart at the middles of its columns; a line breaks at NaN.
  struct Series {
    enum class Style : std::uint8_t { line, steps, points };
    std::string name;  ///< of the legend; empty: none
    std::vector<float> values;
    std::vector<float> low = {}, high = {};  ///< a shaded band about the line, or empty
    Style style = Style::line;
  };

  std::string title;
  std::string x_label, y_label, color_label;
  std::vector<float> values;
  std::int64_t n_rows = 0, n_columns = 0;
  double x_min = 0, x_max = 1;  ///< axis values at the outer edges of the first and last column
  double y_min = 0,
         y_max = 1;     ///< at the outer edges of the first drawn row (bottom) and last (top)
  bool square = false;  ///< both axes equally long (matrices, the sky); otherwise wide
  /// Height of a cell over its width as drawn: 1 for maps with equal steps. 0: cells fill the box.
  double cell_aspect = 0;
  bool first_row_at_top = true;
  double color_min = 0, color_max = 0;  ///< equal: from the data (1st..99.5th percentile)
  /// Color follows (v - min) / (max - min) to this power: 0.5 shows faint things beside bright
  /// ones.
  double color_gamma = 1;
  ColorMap color_map = ColorMap::viridis;
  std::vector<Mark> marks;      ///< circles with a label, in axis values
  bool horizon_circle = false;  ///< unit circle with compass letters (north up, east left)

  std::vector<Curve> graticule;    ///< thin lines over the map
  std::vector<Mark> inner_labels;  ///< of the graticule, over the map
  std::vector<Mark> outer_labels;  ///< end at their place, outside of the outline
  bool own_ticks = false;          ///< those below, not round values (y of a chart: if there are)
  std::vector<Tick> x_ticks, y_ticks;
  Curve outline;  ///< edge of the whole sky, closed, in place of the frame; empty: the frame
  Curve beam;     ///< half-power contour about its middle, drawn in the lower left corner

  std::vector<Series> series;  ///< n_columns values each; a chart has no `values` and no `n_rows`
};

/// PNG, PDF or SVG, by the ending of the name, of panels side by side with axes, ticks, labels,
/// color bars; published by rename. Heat maps are images in all three.
void write_picture(const std::string& path, const std::vector<Panel>& panels,
                   const std::string& caption, bool overwrite);

/// Throws ConfigError for another ending than .png, .pdf and .svg, to be called before any data is
/// read. `option` names the option or key that the path is from. No path, no picture.
void require_picture(const std::string& path, const std::string& option);

}  // namespace ryle
