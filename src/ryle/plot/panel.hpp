// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/plot/canvas.hpp"
#include "ryle/plot/picture.hpp"
#include "ryle/plot/ticks.hpp"

namespace ryle::plot {

/// The scale beside a map. Its ends are points where values beyond them are drawn in the color of
/// the end.
struct ColorBar {
  ColorMap map = ColorMap::viridis;
  double low = 0, high = 1, gamma = 1;
  bool clipped_low = false, clipped_high = false;
  std::string label;
  double unit = 1;  ///< size of a "pixel"
  Ticks ticks() const;
  double width() const;  ///< pixels, ticks and label included
  /// In [0, 1] of the color map.
  double position(double value) const;
  void draw(Canvas& canvas, Point top_left, double height) const;
};

/// "label  (x10^6)"
std::string with_exponent(const std::string& label, int exponent);

/// One panel with its measures: heat map or chart, frame, ticks, labels, color bar, marks. Sizes
/// are known before drawing.
class PanelDrawing {
 public:
  /// Throws ConfigError when the values do not fill rows x columns. Keeps a reference to the panel.
  explicit PanelDrawing(const Panel& panel);
  std::int64_t width() const;
  std::int64_t height() const;
  void draw(Canvas& canvas, std::int64_t left, std::int64_t top) const;
  const ColorBar& color_bar() const { return bar_; }
  /// Pixel of axis values, from the corner of the panel.
  Point place(double x, double y) const {
    const Point p = at(x, y);
    return {p.x + static_cast<double>(left_), p.y + static_cast<double>(top_)};
  }

 private:
  bool is_chart() const { return !panel_.series.empty(); }
  void check() const;
  void choose_size();
  void choose_range();  // of the y axis of a chart
  void choose_colors();
  void choose_margins();
  Point at(double x, double y) const;  // axis values to pixels of the plot box
  double value_at(std::int64_t px, std::int64_t py, std::int64_t n_x, std::int64_t n_y) const;
  std::vector<Line> lines_of(const Panel::Curve& curve, Point origin) const;
  Line box(Point origin) const;  // closed, round the plot
  void draw_map(Canvas& canvas, Point origin) const;
  void draw_frame(Canvas& canvas, Point origin) const;
  void draw_words(Canvas& canvas, Point origin) const;
  void draw_graticule(Canvas& canvas, Point origin) const;
  void draw_beam(Canvas& canvas, Point origin) const;
  void draw_horizon(Canvas& canvas, Point origin) const;
  void draw_marks(Canvas& canvas, Point origin) const;
  void draw_grid_lines(Canvas& canvas, Point origin) const;
  void draw_series(Canvas& canvas, Point origin) const;
  void draw_legend(Canvas& canvas, Point origin) const;

  const Panel& panel_;
  double x_from_ = 0, x_to_ = 1, y_from_ = 0,
         y_to_ = 1;                     // axis values at the edges of the plot box
  std::int64_t map_w_ = 0, map_h_ = 0;  // pixels of the heat map
  std::int64_t margin_ = 0;             // of the plot box round the map
  std::int64_t left_ = 0, right_ = 0, top_ = 0, bottom_ = 0;
  double bar_height_ = 0;
  ColorBar bar_;
  Ticks x_ticks_, y_ticks_;
};

}  // namespace ryle::plot
