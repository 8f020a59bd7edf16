// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/plot/color.hpp"

namespace ryle::plot {

/// Point in pixels, x to the right, y down; pixel (0, 0) covers [0, 1) x [0, 1).
struct Point {
  double x = 0;
  double y = 0;
};
using Line = std::vector<Point>;

/// Picture under construction. Lines and text are anti-aliased by the distance of a pixel centre
/// from the stroke.
class Canvas {
 public:
  Canvas(std::int64_t width, std::int64_t height, Rgb background);
  std::int64_t width() const { return width_; }
  std::int64_t height() const { return height_; }
  const std::vector<std::uint8_t>& rgb() const { return rgb_; }
  Rgb pixel(std::int64_t x, std::int64_t y) const;

  void set(std::int64_t x, std::int64_t y, Rgb color);
  /// Covers a part (0 .. 1) of a pixel.
  void mix(std::int64_t x, std::int64_t y, Rgb color, double coverage) {
    if (x >= 0 && y >= 0 && x < width_ && y < height_) blend(x, y, color, coverage);
  }
  void fill(std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height, Rgb color);
  /// All lines as one stroke: where they cross or overlap the color does not darken. opacity in [0,
  /// 1].
  void stroke(const std::vector<Line>& lines, double thickness, Rgb color, double opacity = 1);
  void circle(Point center, double radius, double thickness, Rgb color, double opacity = 1);

 private:
  void blend(std::int64_t x, std::int64_t y, Rgb color, double coverage);
  std::int64_t width_, height_;
  std::vector<std::uint8_t> rgb_;
};

enum class Align : std::uint8_t { left, center, right };

/// Text in Ryle's own stroke font (picture_font.cpp): ASCII and a few signs (degree, sigma, micro,
/// times, plus-minus, minus). Anything else shows as a small box.
struct TextStyle {
  double cap_height = 11;  ///< pixels
  Rgb color{45, 48, 54};
  Align align = Align::left;
  bool vertical = false;  ///< reads upward
  bool halo = false;      ///< light text with a dark rim, for use on top of a heat map
  bool bold = false;
};
double text_width(std::string_view text, const TextStyle& style);
/// `anchor` is on the baseline, at the left, middle or right of the text.
void draw_text(Canvas& canvas, std::string_view text, Point anchor, const TextStyle& style);
/// Breaks text at blanks so that no line is wider than `width` pixels.
std::vector<std::string> wrapped(std::string_view text, double width, const TextStyle& style);

}  // namespace ryle::plot
