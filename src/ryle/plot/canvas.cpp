// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/plot/canvas.hpp"

#include <cairo-pdf.h>
#include <cairo-svg.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <sstream>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/base/publish.hpp"

namespace ryle::plot {
namespace {

using Surface = std::unique_ptr<cairo_surface_t, void (*)(cairo_surface_t*)>;

// cairo keeps places as 24 bits before the binary point.
constexpr double kFarthest_px = 1e6;

void require(cairo_status_t status) {
  if (status != CAIRO_STATUS_SUCCESS)
    throw IoError(ExitCode::io,
                  std::string("cannot draw a picture: cairo: ") + cairo_status_to_string(status));
}

cairo_status_t append(void* bytes, const unsigned char* data, unsigned int n) {
  static_cast<std::string*>(bytes)->append(reinterpret_cast<const char*>(data), n);
  return CAIRO_STATUS_SUCCESS;
}

void set_color(cairo_t* cairo, Rgb c, double opacity) {
  cairo_set_source_rgba(cairo, c.r / 255.0, c.g / 255.0, c.b / 255.0, opacity);
}

std::uint32_t word_of(Rgb c) {
  return static_cast<std::uint32_t>(c.r << 16) | static_cast<std::uint32_t>(c.g << 8) | c.b;
}
Rgb color_of(std::uint32_t word) {
  return {static_cast<std::uint8_t>(word >> 16), static_cast<std::uint8_t>(word >> 8),
          static_cast<std::uint8_t>(word)};
}

/// Row y of a surface of pixels.
std::uint32_t* row_of(cairo_surface_t* surface, std::int64_t y) {
  return reinterpret_cast<std::uint32_t*>(cairo_image_surface_get_data(surface) +
                                          y * cairo_image_surface_get_stride(surface));
}

}  // namespace

Format format_of(const std::string& path, const std::string& option) {
  require_ending(path, option, {".png", ".pdf", ".svg"});
  const int letter = std::tolower(static_cast<unsigned char>(path.end()[-2]));
  return letter == 'd' ? Format::pdf : letter == 'v' ? Format::svg : Format::png;
}

Canvas::Canvas(std::int64_t width, std::int64_t height, Rgb background, Format format)
    : width_(width),
      height_(height),
      format_(format),
      bytes_(std::make_unique<std::string>()),
      cairo_(nullptr, cairo_destroy) {
  const auto w = static_cast<double>(width), h = static_cast<double>(height);
  Surface surface(nullptr, cairo_surface_destroy);
  if (format == Format::png)
    surface.reset(cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(width),
                                             static_cast<int>(height)));
  else if (format == Format::pdf)
    surface.reset(cairo_pdf_surface_create_for_stream(append, bytes_.get(), w, h));
  else
    surface.reset(cairo_svg_surface_create_for_stream(append, bytes_.get(), w, h));
  // The same picture has the same bytes, whenever it is drawn.
  if (format == Format::pdf)
    cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATE_DATE, "");
  cairo_.reset(cairo_create(surface.get()));
  require(cairo_status(cairo_.get()));
  cairo_set_line_cap(cairo_.get(), CAIRO_LINE_CAP_ROUND);
  cairo_set_line_join(cairo_.get(), CAIRO_LINE_JOIN_ROUND);
  fill(0, 0, w, h, background);
}

std::vector<std::uint8_t> Canvas::rgb() const {
  cairo_surface_t* surface = cairo_get_target(cairo_.get());
  cairo_surface_flush(surface);
  std::vector<std::uint8_t> rgb;
  rgb.reserve(3 * width_ * height_);
  for (std::int64_t y = 0; y < height_; ++y) {
    const std::uint32_t* row = row_of(surface, y);
    for (std::int64_t x = 0; x < width_; ++x) {
      const Rgb c = color_of(row[x]);
      rgb.insert(rgb.end(), {c.r, c.g, c.b});
    }
  }
  return rgb;
}

std::string Canvas::file() {
  require(cairo_status(cairo_.get()));
  cairo_surface_t* surface = cairo_get_target(cairo_.get());
  if (format_ == Format::png)
    require(cairo_surface_write_to_png_stream(surface, append, bytes_.get()));
  else
    cairo_surface_finish(surface);
  require(cairo_surface_status(surface));
  return std::move(*bytes_);
}

void Canvas::trace(const std::vector<Line>& lines, bool closed) {
  cairo_new_path(cairo_.get());
  for (const auto& line : lines) {
    cairo_new_sub_path(cairo_.get());
    for (const Point p : line) {
      if (std::abs(p.x) < kFarthest_px && std::abs(p.y) < kFarthest_px)
        cairo_line_to(cairo_.get(), p.x, p.y);
      else if (!closed)
        cairo_new_sub_path(cairo_.get());
    }
    if (closed || line.size() == 1) cairo_close_path(cairo_.get());
  }
}

void Canvas::fill(double x, double y, double width, double height, Rgb color) {
  fill({{x, y}, {x + width, y}, {x + width, y + height}, {x, y + height}}, color);
}

void Canvas::fill(const Line& outline, Rgb color, double opacity) {
  trace({outline}, true);
  set_color(cairo_.get(), color, opacity);
  cairo_fill(cairo_.get());
}

void Canvas::image(Point corner, double width, double height, const Image& image) {
  const Surface pixels(cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(image.width),
                                                  static_cast<int>(image.height)),
                       cairo_surface_destroy);
  require(cairo_surface_status(pixels.get()));
  for (std::int64_t y = 0; y < image.height; ++y)
    std::transform(image.rgb.begin() + y * image.width, image.rgb.begin() + (y + 1) * image.width,
                   row_of(pixels.get(), y), word_of);
  cairo_surface_mark_dirty(pixels.get());
  cairo_save(cairo_.get());
  cairo_translate(cairo_.get(), corner.x, corner.y);
  cairo_scale(cairo_.get(), width / static_cast<double>(image.width),
              height / static_cast<double>(image.height));
  cairo_set_source_surface(cairo_.get(), pixels.get(), 0, 0);
  cairo_pattern_set_filter(cairo_get_source(cairo_.get()), CAIRO_FILTER_NEAREST);
  cairo_paint(cairo_.get());
  cairo_restore(cairo_.get());
}

void Canvas::stroke(const std::vector<Line>& lines, double thickness, Rgb color, double opacity) {
  trace(lines, false);
  set_color(cairo_.get(), color, opacity);
  cairo_set_line_width(cairo_.get(), thickness);
  cairo_stroke(cairo_.get());
}

void Canvas::circle(Point center, double radius, double thickness, Rgb color, double opacity) {
  cairo_new_path(cairo_.get());
  cairo_arc(cairo_.get(), center.x, center.y, radius, 0, 2 * kPi);
  cairo_close_path(cairo_.get());
  set_color(cairo_.get(), color, opacity);
  cairo_set_line_width(cairo_.get(), thickness);
  cairo_stroke(cairo_.get());
}

Clip::Clip(Canvas& canvas, const std::vector<Line>& outline) : cairo_(canvas.cairo_.get()) {
  cairo_save(cairo_);
  if (outline.empty()) return;
  canvas.trace(outline, true);
  cairo_clip(cairo_);
}

Clip::~Clip() { cairo_restore(cairo_); }

namespace {

/// One weight of the font of all text, at a size of which measures are taken.
class Font {
 public:
  static const Font& of(const TextStyle& style) {
    static const Font regular(CAIRO_FONT_WEIGHT_NORMAL), bold(CAIRO_FONT_WEIGHT_BOLD);
    return style.bold ? bold : regular;
  }
  cairo_font_face_t* face() const { return face_; }
  const cairo_font_options_t* options() const { return options_; }
  /// Of an em, for capitals of a pixel.
  double size_px() const { return kSize_px / cap_height_px_; }
  /// For capitals of a pixel.
  double width_px(const std::string& text) const {
    return extents(text).x_advance / cap_height_px_;
  }

 private:
  static constexpr double kSize_px = 100;

  // Made once in a run, and kept to its end.
  explicit Font(cairo_font_weight_t weight)
      : face_(cairo_toy_font_face_create("DejaVu Sans", CAIRO_FONT_SLANT_NORMAL, weight)),
        options_(cairo_font_options_create()) {
    // Not as the desktop would have it: measures that scale, the same everywhere.
    cairo_font_options_set_antialias(options_, CAIRO_ANTIALIAS_GRAY);
    cairo_font_options_set_hint_style(options_, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options_, CAIRO_HINT_METRICS_OFF);
    cairo_matrix_t size, identity;
    cairo_matrix_init_scale(&size, kSize_px, kSize_px);
    cairo_matrix_init_identity(&identity);
    font_ = cairo_scaled_font_create(face_, &size, &identity, options_);
    cap_height_px_ = extents("H").height;
    require(cairo_scaled_font_status(font_));
  }
  cairo_text_extents_t extents(const std::string& text) const {
    cairo_text_extents_t extents{};
    cairo_scaled_font_text_extents(font_, text.c_str(), &extents);
    return extents;
  }

  cairo_font_face_t* face_;
  cairo_font_options_t* options_;
  cairo_scaled_font_t* font_;
  double cap_height_px_ = 0;
};

/// What cairo draws: it rejects a text with bytes that are not UTF-8.
std::string readable(std::string_view text) {
  std::string out;
  for (std::size_t k = 0; k < text.size();) {
    const auto first = static_cast<unsigned char>(text[k]);
    const std::size_t n = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    std::uint32_t code = first & (0xffU >> (n == 1 ? 0 : n + 1));
    std::size_t end = k + 1;
    for (; end < std::min(k + n, text.size()) && (text[end] & 0xc0) == 0x80; ++end)
      code = code << 6 | (static_cast<unsigned char>(text[end]) & 0x3fU);
    constexpr std::uint32_t kFirst[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool whole = end == k + n && (first < 0x80 || (first >= 0xc2 && first < 0xf5)) &&
                       code >= kFirst[n] && code < 0x110000 && (code < 0xd800 || code > 0xdfff);
    out += whole ? text.substr(k, n) : "?";
    k = end;
  }
  return out;
}

}  // namespace

double text_width(std::string_view text, const TextStyle& style) {
  return Font::of(style).width_px(readable(text)) * style.cap_height;
}

void draw_text(Canvas& canvas, std::string_view text, Point anchor, const TextStyle& style) {
  const Font& font = Font::of(style);
  const std::string letters = readable(text);
  cairo_t* cairo = canvas.cairo_.get();
  cairo_save(cairo);
  cairo_set_font_face(cairo, font.face());
  cairo_set_font_options(cairo, font.options());
  cairo_set_font_size(cairo, font.size_px() * style.cap_height);
  cairo_translate(cairo, anchor.x, anchor.y);
  if (style.vertical) cairo_rotate(cairo, -kPi / 2);
  const double before = style.align == Align::left ? 0 : style.align == Align::center ? 0.5 : 1;
  const double left = -before * text_width(text, style);
  if (style.halo) {
    cairo_move_to(cairo, left, 0);
    cairo_text_path(cairo, letters.c_str());
    set_color(cairo, {10, 10, 14}, 0.75);
    cairo_set_line_width(cairo, 3);
    cairo_stroke(cairo);
  }
  cairo_move_to(cairo, left, 0);
  set_color(cairo, style.color, 1);
  cairo_show_text(cairo, letters.c_str());
  cairo_restore(cairo);
}

std::vector<std::string> wrapped(std::string_view text, double width, const TextStyle& style) {
  std::vector<std::string> lines;
  std::istringstream paragraphs{std::string(text)};
  for (std::string paragraph; std::getline(paragraphs, paragraph);) {
    std::istringstream words(paragraph);
    std::string line;
    for (std::string word; words >> word;) {
      const std::string longer = line.empty() ? word : line + " " + word;
      if (!line.empty() && text_width(longer, style) > width) {
        lines.push_back(line);
        line = word;
      } else {
        line = longer;
      }
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace ryle::plot
