// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/plot/color.hpp"

struct _cairo;

namespace ryle::plot {

/// Point in pixels, x to the right, y down; pixel (0, 0) covers [0, 1) x [0, 1).
struct Point {
  double x = 0;
  double y = 0;
};
using Line = std::vector<Point>;

enum class Format : std::uint8_t { png, pdf, svg };
/// By the ending of the name. Throws ConfigError for another one; `option` names what the path is
/// from.
Format format_of(const std::string& path, const std::string& option = "picture");

/// Pixels of a heat map. @shape rgb [height][width]
struct Image {
  std::int64_t width = 0, height = 0;
  std::vector<Rgb> rgb;
};

/// Picture under construction, drawn by cairo: on pixels (PNG) or as vectors of the same measures,
/// a pixel a unit (PDF, SVG). Everything is anti-aliased. Throws IoError where cairo fails.
class Canvas {
 public:
  Canvas(std::int64_t width, std::int64_t height, Rgb background, Format format = Format::png);
  std::int64_t width() const { return width_; }
  std::int64_t height() const { return height_; }
  /// Pixels that an image of a heat map has along a unit: a vector picture is looked at enlarged.
  std::int64_t image_scale() const { return format_ == Format::png ? 1 : 2; }
  /// What is drawn so far, of a PNG. @shape [height][width][3]
  std::vector<std::uint8_t> rgb() const;
  /// The bytes of the file. Nothing may be drawn afterwards.
  std::string file();

  void fill(double x, double y, double width, double height, Rgb color);
  /// Fills a closed line.
  void fill(const Line& outline, Rgb color, double opacity = 1);
  /// The pixels of the image side by side in a rectangle.
  void image(Point corner, double width, double height, const Image& image);
  /// All lines as one stroke: where they cross or overlap the color does not darken. opacity in [0,
  /// 1].
  void stroke(const std::vector<Line>& lines, double thickness, Rgb color, double opacity = 1);
  void circle(Point center, double radius, double thickness, Rgb color, double opacity = 1);

 private:
  friend class Clip;
  friend void draw_text(Canvas& canvas, std::string_view text, Point anchor,
                        const struct TextStyle& style);
  void trace(const std::vector<Line>& lines, bool closed);
  std::int64_t width_, height_;
  Format format_;
  std::unique_ptr<std::string> bytes_;  // of a vector picture, where cairo appends them
  std::unique_ptr<_cairo, void (*)(_cairo*)> cairo_;
};

/// While it lives, only what lies inside of the closed lines is drawn; without lines, everything.
class Clip {
 public:
  Clip(Canvas& canvas, const std::vector<Line>& outline);
  ~Clip();
  Clip(const Clip&) = delete;
  Clip& operator=(const Clip&) = delete;

 private:
  _cairo* cairo_;
};

enum class Align : std::uint8_t { left, center, right };

/// Text in DejaVu Sans, in what fontconfig has in its place, or, where no font is installed, in the
/// stroke font of cairo. Bytes that are not UTF-8 show as question marks.
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
