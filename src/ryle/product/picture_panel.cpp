// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/product/picture_panel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"

namespace ryle::picture {
namespace {

constexpr Rgb kFrame{110, 114, 122};
constexpr Rgb kNoData{234, 236, 239};
constexpr double kTick_px = 5;
constexpr double kTickText_px = 9.5;
constexpr double kLabelText_px = 10.5;
constexpr double kTitleText_px = 13;
constexpr std::int64_t kBarGap_px = 16;
constexpr std::int64_t kBarWidth_px = 16;
constexpr std::int64_t kSquare_px = 512;
constexpr std::int64_t kWide_px = 640;
constexpr std::int64_t kHigh_px = 448;

TextStyle tick_style(Align align) { return {kTickText_px, kInk, align, false, false, false}; }

// Pixels for n cells. Few cells fill the wanted size exactly, so that neighbouring panels line up;
// many get a whole number of pixels each, lest stripes of one and two pixels alternate.
std::int64_t pixels_for(std::int64_t n, std::int64_t wanted) {
  if (7 * n <= wanted) return wanted;
  const auto each = std::llround(static_cast<double>(wanted) / static_cast<double>(n));
  return each >= 1 ? each * n : wanted;
}

double widest(const Ticks& ticks) {
  double width = 0;
  for (const auto& label : ticks.labels)
    width = std::max(width, text_width(label, tick_style(Align::left)));
  return width;
}

std::string with_exponent(const std::string& label, int exponent) {
  if (exponent == 0) return label;
  const std::string factor = "\u00d710^" + std::to_string(exponent);
  return label.empty() ? factor : label + "  (" + factor + ")";
}

// Value below which a fraction of the finite values lies.
double quantile(std::vector<float>& values, double fraction) {
  const auto k = static_cast<std::ptrdiff_t>(fraction * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + k, values.end());
  return static_cast<double>(values[static_cast<std::size_t>(k)]);
}

Point operator+(Point a, Point b) { return {a.x + b.x, a.y + b.y}; }

}  // namespace

PanelDrawing::PanelDrawing(const Panel& panel) : panel_(panel) {
  const auto size = checked_product({panel.n_rows, panel.n_columns}, "picture panel");
  if (size == 0 || static_cast<std::int64_t>(panel.values.size()) != size) {
    throw ConfigError("picture panel \"" + panel.title +
                      "\": " + std::to_string(panel.values.size()) + " values for " +
                      std::to_string(panel.n_rows) + " x " + std::to_string(panel.n_columns));
  }
  choose_size();
  choose_colors();
}

void PanelDrawing::choose_size() {
  const bool square = panel_.square || panel_.horizon_circle;
  map_w_ = pixels_for(panel_.n_columns, square ? kSquare_px : kWide_px);
  map_h_ = pixels_for(panel_.n_rows, square ? kSquare_px : kHigh_px);
  x_from_ = panel_.x_min;
  x_to_ = panel_.x_max;
  y_from_ = panel_.y_min;
  y_to_ = panel_.y_max;
  if (panel_.horizon_circle) {
    // Room for the letters of the compass between the horizon and the frame.
    margin_ = 30;
    const double dx =
        static_cast<double>(margin_) / static_cast<double>(map_w_) * (x_to_ - x_from_);
    const double dy =
        static_cast<double>(margin_) / static_cast<double>(map_h_) * (y_to_ - y_from_);
    x_from_ -= dx;
    x_to_ += dx;
    y_from_ -= dy;
    y_to_ += dy;
  }
  x_ticks_ = ticks_between(x_from_, x_to_, 7);
  y_ticks_ = ticks_between(y_from_, y_to_, 7);
  left_ = static_cast<std::int64_t>(widest(y_ticks_) + kTick_px + 8) +
          (panel_.y_label.empty() ? 0 : 22);
  top_ = panel_.title.empty() ? 8 : 30;
  bottom_ = 24 + (panel_.x_label.empty() ? 0 : 22);
}

void PanelDrawing::choose_colors() {
  low_ = panel_.color_min;
  high_ = panel_.color_max;
  if (!(high_ > low_)) {
    std::vector<float> finite;
    for (const float v : panel_.values) {
      if (std::isfinite(v)) finite.push_back(v);
    }
    low_ = finite.empty() ? 0 : quantile(finite, 0.01);
    high_ = finite.empty() ? 1 : quantile(finite, 0.995);
    // All alike: a band round the value, so that the bar has two ends.
    if (!(high_ > low_)) {
      const double half = low_ != 0 ? std::abs(low_) * 0.05 : 1;
      low_ -= half;
      high_ += half;
    }
  }
  color_ticks_ = ticks_between(low_, high_, 8, panel_.color_map == ColorMap::twilight);
  const bool has_label = !panel_.color_label.empty() || color_ticks_.exponent != 0;
  right_ = kBarGap_px + kBarWidth_px +
           static_cast<std::int64_t>(kTick_px + 6 + widest(color_ticks_)) + (has_label ? 24 : 4);
}

std::int64_t PanelDrawing::width() const { return left_ + map_w_ + 2 * margin_ + right_; }
std::int64_t PanelDrawing::height() const { return top_ + map_h_ + 2 * margin_ + bottom_; }

Point PanelDrawing::at(double x, double y) const {
  const auto w = static_cast<double>(map_w_ + 2 * margin_),
             h = static_cast<double>(map_h_ + 2 * margin_);
  return {(x - x_from_) / (x_to_ - x_from_) * w, h - (y - y_from_) / (y_to_ - y_from_) * h};
}

// Mean of the cells under a pixel of the map (one cell where the map is enlarged); NaN where there
// is none.
double PanelDrawing::value_at(std::int64_t px, std::int64_t py) const {
  const auto first = [](std::int64_t p, std::int64_t n_cells, std::int64_t n_px) {
    return p * n_cells / n_px;
  };
  const std::int64_t row_px = panel_.first_row_at_top ? py : map_h_ - 1 - py;
  const auto r0 = first(row_px, panel_.n_rows, map_h_),
             r1 = std::max(r0 + 1, first(row_px + 1, panel_.n_rows, map_h_));
  const auto c0 = first(px, panel_.n_columns, map_w_),
             c1 = std::max(c0 + 1, first(px + 1, panel_.n_columns, map_w_));
  double sum = 0;
  std::int64_t n = 0;
  for (auto r = r0; r < r1; ++r) {
    for (auto c = c0; c < c1; ++c) {
      const float v = panel_.values[static_cast<std::size_t>(r * panel_.n_columns + c)];
      if (!std::isfinite(v)) continue;
      sum += static_cast<double>(v);
      ++n;
    }
  }
  return n > 0 ? sum / static_cast<double>(n) : std::numeric_limits<double>::quiet_NaN();
}

double PanelDrawing::color_position(double value) const {
  const double linear = std::clamp((value - low_) / (high_ - low_), 0.0, 1.0);
  return panel_.color_gamma == 1 ? linear : std::pow(linear, panel_.color_gamma);
}

void PanelDrawing::draw_map(Canvas& canvas, Point origin) const {
  const auto x0 = static_cast<std::int64_t>(origin.x) + margin_,
             y0 = static_cast<std::int64_t>(origin.y) + margin_;
  for (std::int64_t y = 0; y < map_h_; ++y) {
    for (std::int64_t x = 0; x < map_w_; ++x) {
      const double v = value_at(x, y);
      const Rgb empty = panel_.horizon_circle ? kPaper : kNoData;
      canvas.set(x0 + x, y0 + y,
                 std::isnan(v) ? empty : color_at(panel_.color_map, color_position(v)));
    }
  }
}

void PanelDrawing::draw_frame(Canvas& canvas, Point origin) const {
  const auto w = static_cast<double>(map_w_ + 2 * margin_),
             h = static_cast<double>(map_h_ + 2 * margin_);
  const Point a = origin, b = origin + Point{w, 0}, c = origin + Point{w, h},
              d = origin + Point{0, h};
  canvas.stroke({{a, b, c, d, a}}, 1, kFrame);
  std::vector<Line> ticks;
  for (const double x : x_ticks_.values) {
    const Point p = origin + at(x, y_from_);
    ticks.push_back({p, {p.x, p.y + kTick_px}});
  }
  for (const double x : x_ticks_.minor) {
    const Point p = origin + at(x, y_from_);
    ticks.push_back({p, {p.x, p.y + kTick_px / 2}});
  }
  for (const double y : y_ticks_.values) {
    const Point p = origin + at(x_from_, y);
    ticks.push_back({{p.x - kTick_px, p.y}, p});
  }
  for (const double y : y_ticks_.minor) {
    const Point p = origin + at(x_from_, y);
    ticks.push_back({{p.x - kTick_px / 2, p.y}, p});
  }
  canvas.stroke(ticks, 1, kFrame);
  for (std::size_t k = 0; k < x_ticks_.values.size(); ++k) {
    const Point p = origin + at(x_ticks_.values[k], y_from_);
    draw_text(canvas, x_ticks_.labels[k], {p.x, p.y + kTick_px + 4 + kTickText_px},
              tick_style(Align::center));
  }
  for (std::size_t k = 0; k < y_ticks_.values.size(); ++k) {
    const Point p = origin + at(x_from_, y_ticks_.values[k]);
    draw_text(canvas, y_ticks_.labels[k], {p.x - kTick_px - 4, p.y + kTickText_px / 2},
              tick_style(Align::right));
  }
  TextStyle label{kLabelText_px, kInk, Align::center, false, false, false};
  draw_text(canvas, with_exponent(panel_.x_label, x_ticks_.exponent),
            {origin.x + w / 2, origin.y + h + 41}, label);
  label.vertical = true;
  draw_text(canvas, with_exponent(panel_.y_label, y_ticks_.exponent),
            {origin.x - static_cast<double>(left_) + kLabelText_px + 2, origin.y + h / 2}, label);
  draw_text(canvas, panel_.title, {origin.x + w / 2, origin.y - 11},
            {kTitleText_px, kInk, Align::center, false, false, true});
}

void PanelDrawing::draw_color_bar(Canvas& canvas, Point origin) const {
  const auto h = map_h_ + 2 * margin_;
  const auto x = static_cast<std::int64_t>(origin.x) + map_w_ + 2 * margin_ + kBarGap_px;
  const auto y = static_cast<std::int64_t>(origin.y);
  for (std::int64_t k = 0; k < h; ++k) {
    const double position = (static_cast<double>(h - k) - 0.5) / static_cast<double>(h);
    canvas.fill(x, y + k, kBarWidth_px, 1, color_at(panel_.color_map, position));
  }
  const auto left = static_cast<double>(x), right = static_cast<double>(x + kBarWidth_px);
  const auto top = static_cast<double>(y), bottom = static_cast<double>(y + h);
  canvas.stroke({{{left, top}, {right, top}, {right, bottom}, {left, bottom}, {left, top}}}, 1,
                kFrame);
  const auto height_of = [&](double v) { return bottom - color_position(v) * (bottom - top); };
  for (std::size_t k = 0; k < color_ticks_.values.size(); ++k) {
    const double at_y = height_of(color_ticks_.values[k]);
    canvas.stroke({{{right, at_y}, {right + kTick_px, at_y}}}, 1, kFrame);
    draw_text(canvas, color_ticks_.labels[k], {right + kTick_px + 4, at_y + kTickText_px / 2},
              tick_style(Align::left));
  }
  const double label_x = right + kTick_px + 4 + widest(color_ticks_) + 8 + kLabelText_px;
  draw_text(canvas, with_exponent(panel_.color_label, color_ticks_.exponent),
            {label_x, (top + bottom) / 2},
            {kLabelText_px, kInk, Align::center, true, false, false});
}

void PanelDrawing::draw_horizon(Canvas& canvas, Point origin) const {
  const Point center = origin + at(0, 0);
  const auto ring = [&](double radius, double thickness, Rgb color, double opacity) {
    Line line;
    for (int k = 0; k <= 360; ++k) {
      const double angle_rad = k * kDegree_rad;
      line.push_back(origin + at(radius * std::cos(angle_rad), radius * std::sin(angle_rad)));
    }
    canvas.stroke({line}, thickness, color, opacity);
  };
  // Altitudes 30 and 60 degrees, and the cross of the meridian and the prime vertical.
  for (const double altitude_deg : {30.0, 60.0})
    ring(std::cos(altitude_deg * kDegree_rad), 1, {255, 255, 255}, 0.3);
  canvas.stroke({{origin + at(-1, 0), origin + at(1, 0)}, {origin + at(0, -1), origin + at(0, 1)}},
                1, {255, 255, 255}, 0.22);
  ring(1, 2, kInk, 1);
  static_cast<void>(center);
  const struct {
    const char* letter;
    double x, y;
  } compass[] = {{"N", 0, 1}, {"E", 1, 0}, {"S", 0, -1}, {"W", -1, 0}};
  for (const auto& c : compass) {
    const Point rim = origin + at(c.x, c.y);
    const double dx = rim.x - center.x, dy = rim.y - center.y, r = std::hypot(dx, dy);
    draw_text(canvas, c.letter, {rim.x + 15 * dx / r, rim.y + 15 * dy / r + 6},
              {12, kInk, Align::center, false, false, true});
  }
}

void PanelDrawing::draw_marks(Canvas& canvas, Point origin) const {
  const auto w = static_cast<double>(map_w_ + 2 * margin_);
  for (const auto& mark : panel_.marks) {
    const double u = (mark.x - x_from_) / (x_to_ - x_from_),
                 v = (mark.y - y_from_) / (y_to_ - y_from_);
    if (!(u >= 0 && u <= 1 && v >= 0 && v <= 1)) continue;
    const Point p = origin + at(mark.x, mark.y);
    canvas.circle(p, 10, 3.6, {10, 10, 14}, 0.55);
    canvas.circle(p, 10, 1.5, {255, 255, 255});
    TextStyle style{10, {255, 255, 255}, Align::left, false, true, false};
    // To the right of the circle, or to its left where that would leave the box.
    const bool fits = p.x + 16 + text_width(mark.label, style) < origin.x + w - 4;
    if (!fits) style.align = Align::right;
    draw_text(canvas, mark.label, {p.x + (fits ? 15 : -15), p.y + 5}, style);
  }
}

void PanelDrawing::draw(Canvas& canvas, std::int64_t left, std::int64_t top) const {
  const Point origin{static_cast<double>(left + left_), static_cast<double>(top + top_)};
  draw_map(canvas, origin);
  if (panel_.horizon_circle) draw_horizon(canvas, origin);
  draw_frame(canvas, origin);
  draw_marks(canvas, origin);
  draw_color_bar(canvas, origin);
}

}  // namespace ryle::picture
