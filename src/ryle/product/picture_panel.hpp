// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/product/picture.hpp"
#include "ryle/product/picture_canvas.hpp"
#include "ryle/product/picture_ticks.hpp"

namespace ryle::picture {

/// One panel with its measures: heat map, frame, ticks, labels, color bar, marks. Sizes are known
/// before drawing.
class PanelDrawing {
 public:
  /// Throws ConfigError when the values do not fill rows x columns. Keeps a reference to the panel.
  explicit PanelDrawing(const Panel& panel);
  std::int64_t width() const;
  std::int64_t height() const;
  void draw(Canvas& canvas, std::int64_t left, std::int64_t top) const;

 private:
  void choose_size();
  void choose_colors();
  Point at(double x, double y) const;         // axis values to pixels of the plot box
  double color_position(double value) const;  // in [0, 1] of the color map
  double value_at(std::int64_t px, std::int64_t py) const;
  void draw_map(Canvas& canvas, Point origin) const;
  void draw_frame(Canvas& canvas, Point origin) const;
  void draw_color_bar(Canvas& canvas, Point origin) const;
  void draw_horizon(Canvas& canvas, Point origin) const;
  void draw_marks(Canvas& canvas, Point origin) const;

  const Panel& panel_;
  double x_from_ = 0, x_to_ = 1, y_from_ = 0,
         y_to_ = 1;                     // axis values at the edges of the plot box
  std::int64_t map_w_ = 0, map_h_ = 0;  // pixels of the heat map
  std::int64_t margin_ = 0;             // of the plot box round the map
  std::int64_t left_ = 0, right_ = 0, top_ = 0, bottom_ = 0;
  double low_ = 0, high_ = 1;
  Ticks x_ticks_, y_ticks_, color_ticks_;
};

}  // namespace ryle::picture
