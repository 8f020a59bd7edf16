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

/// A labelled heat map. @shape values [row][column]; NaN is drawn in the background color
struct Panel {
  std::string title;
  std::string x_label, y_label, color_label;
  std::vector<float> values;
  std::int64_t n_rows = 0, n_columns = 0;
  double x_min = 0, x_max = 1;  ///< axis values at the outer edges of the first and last column
  double y_min = 0,
         y_max = 1;     ///< at the outer edges of the first drawn row (bottom) and last (top)
  bool square = false;  ///< both axes equally long (matrices, the sky); otherwise wide
  bool first_row_at_top = true;
  double color_min = 0, color_max = 0;  ///< equal: from the data (1st..99.5th percentile)
  /// Color follows (v - min) / (max - min) to this power: 0.5 shows faint things beside bright
  /// ones.
  double color_gamma = 1;
  ColorMap color_map = ColorMap::viridis;
  struct Mark {
    double x = 0, y = 0;
    std::string label;
  };
  std::vector<Mark> marks;      ///< circles with a label, in axis values
  bool horizon_circle = false;  ///< unit circle with compass letters (north up, east left)
};

/// PNG of panels side by side with axes, ticks, labels, color bars; published by rename.
void write_png(const std::string& path, const std::vector<Panel>& panels,
               const std::string& caption, bool overwrite);

}  // namespace ryle
