// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/plot/panel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"

namespace ryle::plot {
namespace {

constexpr double kTick_px = 5;
constexpr double kTickText_px = 9.5;
constexpr double kLabelText_px = 10.5;
constexpr double kTitleText_px = 13;
constexpr std::int64_t kBarGap_px = 16;
constexpr double kLowestBar_px = 200;  // beside maps that are lower
constexpr std::int64_t kSquare_px = 512;
constexpr std::int64_t kWide_px = 640;
constexpr std::int64_t kHigh_px = 448;
// Maps keep their shape: within this box, or, where they would be a thread in it, longer.
constexpr double kMapWide_px = 720, kMapHigh_px = 600, kMapLongest_px = 1400, kMapThin_px = 48;
constexpr Rgb kGraticule{168, 172, 180};

TextStyle tick_style(Align align) { return {kTickText_px, kInk, align, false, false, false}; }

// Pixels for n cells. Few cells fill the wanted size exactly, so that neighbouring panels line up;
// many get a whole number of pixels each, lest stripes of one and two pixels alternate.
std::int64_t pixels_for(std::int64_t n, std::int64_t wanted) {
  if (7 * n <= wanted) return wanted;
  const auto each = std::llround(static_cast<double>(wanted) / static_cast<double>(n));
  return each >= 1 ? each * n : wanted;
}

TextStyle title_style() { return {kTitleText_px, kInk, Align::center, false, false, true}; }

Ticks own(const std::vector<Panel::Tick>& ticks) {
  Ticks all;
  for (const auto& tick : ticks) {
    all.values.push_back(tick.at);
    all.labels.push_back(tick.label);
  }
  return all;
}

double widest(const Ticks& ticks) {
  double width = 0;
  for (const auto& label : ticks.labels)
    width = std::max(width, text_width(label, tick_style(Align::left)));
  return width;
}

// Value below which a fraction of the finite values lies.
double quantile(std::vector<float>& values, double fraction) {
  const auto k = static_cast<std::ptrdiff_t>(fraction * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + k, values.end());
  return static_cast<double>(values[k]);
}

Point operator+(Point a, Point b) { return {a.x + b.x, a.y + b.y}; }

}  // namespace

PanelDrawing::PanelDrawing(const Panel& panel) : panel_(panel) {
  check();
  choose_size();
  if (is_chart())
    choose_range();
  else
    choose_colors();
  choose_margins();
}

void PanelDrawing::check() const {
  const auto fail = [&](std::size_t n, std::int64_t rows) {
    throw ConfigError("picture panel \"" + panel_.title + "\": " + std::to_string(n) +
                      " values for " + std::to_string(rows) + " x " +
                      std::to_string(panel_.n_columns));
  };
  for (const auto& s : panel_.series) {
    const auto n = static_cast<std::size_t>(panel_.n_columns);
    if (s.values.size() != n || n == 0) fail(s.values.size(), 1);
    if (s.low.size() != s.high.size() || (!s.low.empty() && s.low.size() != n))
      fail(s.low.size(), 1);
  }
  if (is_chart()) return;
  const auto size = checked_product({panel_.n_rows, panel_.n_columns}, "picture panel");
  if (size == 0 || static_cast<std::int64_t>(panel_.values.size()) != size)
    fail(panel_.values.size(), panel_.n_rows);
}

void PanelDrawing::choose_size() {
  const bool square = panel_.square || panel_.horizon_circle;
  map_w_ = pixels_for(panel_.n_columns, square ? kSquare_px : kWide_px);
  map_h_ = pixels_for(panel_.n_rows, square ? kSquare_px : kHigh_px);
  if (is_chart()) {
    map_w_ = kWide_px;
    map_h_ = kHigh_px;
  } else if (panel_.cell_aspect > 0) {
    const auto w = static_cast<double>(panel_.n_columns);
    const double h = static_cast<double>(panel_.n_rows) * panel_.cell_aspect;
    double scale = std::min(kMapWide_px / w, kMapHigh_px / h);
    scale =
        std::max(scale, std::min(kMapThin_px / std::min(w, h), kMapLongest_px / std::max(w, h)));
    if (scale > 3) scale = std::floor(scale);  // cells of equal pixels
    map_w_ = std::max<std::int64_t>(1, std::llround(w * scale));
    map_h_ = std::max<std::int64_t>(1, std::llround(h * scale));
  }
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
}

void PanelDrawing::choose_margins() {
  x_ticks_ = ticks_between(x_from_, x_to_, 7);
  y_ticks_ = ticks_between(y_from_, y_to_, 7);
  if (panel_.own_ticks) {
    x_ticks_ = own(panel_.x_ticks);
    if (!is_chart() || !panel_.y_ticks.empty()) y_ticks_ = own(panel_.y_ticks);
  }
  double outer = 0;
  for (const auto& label : panel_.outer_labels)
    outer = std::max(outer, text_width(label.label, tick_style(Align::right)));
  left_ = static_cast<std::int64_t>(std::max(outer, widest(y_ticks_)) + kTick_px + 8) +
          (panel_.y_label.empty() ? 0 : 22);
  top_ = panel_.title.empty() ? 8 : 30;
  bottom_ = 24 + (panel_.x_label.empty() ? 0 : 22);
  right_ = 12;
  if (!is_chart()) {
    right_ = kBarGap_px + static_cast<std::int64_t>(std::ceil(bar_.width()));
    bar_height_ = std::max(static_cast<double>(map_h_ + 2 * margin_), kLowestBar_px);
    // The points at the ends of the bar stand within the height of the map.
    if (bar_.clipped_high) bar_height_ -= 12;
    if (bar_.clipped_low) bar_height_ -= 12;
    const double low = kLowestBar_px - static_cast<double>(map_h_ + 2 * margin_);
    if (low > 0) {
      top_ += static_cast<std::int64_t>(low / 2);
      bottom_ = std::max(bottom_, static_cast<std::int64_t>(low / 2));
    }
  }
  // Titles of narrow maps.
  const double box = static_cast<double>(map_w_ + 2 * margin_);
  const double words = std::max(text_width(panel_.title, title_style()),
                                text_width(with_exponent(panel_.x_label, x_ticks_.exponent),
                                           {kLabelText_px, kInk, Align::center}));
  const auto beside = static_cast<std::int64_t>(std::ceil(0.5 * (words - box)));
  left_ = std::max(left_, beside);
  right_ = std::max(right_, beside);
}

void PanelDrawing::choose_colors() {
  bar_.map = panel_.color_map;
  bar_.gamma = panel_.color_gamma;
  bar_.label = panel_.color_label;
  bar_.low = panel_.color_min;
  bar_.high = panel_.color_max;
  std::vector<float> finite;
  for (const float v : panel_.values) {
    if (std::isfinite(v)) finite.push_back(v);
  }
  if (!(bar_.high > bar_.low)) {
    bar_.low = finite.empty() ? 0 : quantile(finite, 0.01);
    bar_.high = finite.empty() ? 1 : quantile(finite, 0.995);
    // All alike: a band round the value, so that the bar has two ends.
    if (!(bar_.high > bar_.low)) {
      const double half = bar_.low != 0 ? std::abs(bar_.low) * 0.05 : 1;
      bar_.low -= half;
      bar_.high += half;
    }
  }
  // A color map that goes round has no ends.
  if (panel_.color_map == ColorMap::twilight || finite.empty()) return;
  const auto [minimum, maximum] = std::minmax_element(finite.begin(), finite.end());
  const double slack = 1e-6 * (bar_.high - bar_.low);
  bar_.clipped_low = static_cast<double>(*minimum) < bar_.low - slack;
  bar_.clipped_high = static_cast<double>(*maximum) > bar_.high + slack;
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
double PanelDrawing::value_at(std::int64_t px, std::int64_t py, std::int64_t n_x,
                              std::int64_t n_y) const {
  const auto first = [](std::int64_t p, std::int64_t n_cells, std::int64_t n_px) {
    return p * n_cells / n_px;
  };
  const std::int64_t row_px = panel_.first_row_at_top ? py : n_y - 1 - py;
  const auto r0 = first(row_px, panel_.n_rows, n_y),
             r1 = std::max(r0 + 1, first(row_px + 1, panel_.n_rows, n_y));
  const auto c0 = first(px, panel_.n_columns, n_x),
             c1 = std::max(c0 + 1, first(px + 1, panel_.n_columns, n_x));
  double sum = 0;
  std::int64_t n = 0;
  for (auto r = r0; r < r1; ++r) {
    for (auto c = c0; c < c1; ++c) {
      const float v = panel_.values[r * panel_.n_columns + c];
      if (!std::isfinite(v)) continue;
      sum += static_cast<double>(v);
      ++n;
    }
  }
  return n > 0 ? sum / static_cast<double>(n) : std::numeric_limits<double>::quiet_NaN();
}

// Where the curve is on the picture: it breaks at places that are none and at leaps across the map.
std::vector<Line> PanelDrawing::lines_of(const Panel::Curve& curve, Point origin) const {
  std::vector<Line> lines(1);
  for (const auto& place : curve) {
    if (!std::isfinite(place.x) || !std::isfinite(place.y)) {
      if (!lines.back().empty()) lines.emplace_back();
      continue;
    }
    const Point p = origin + at(place.x, place.y);
    if (!lines.back().empty() &&
        std::abs(p.x - lines.back().back().x) > 0.5 * static_cast<double>(map_w_))
      lines.emplace_back();
    lines.back().push_back(p);
  }
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

void PanelDrawing::draw_map(Canvas& canvas, Point origin) const {
  Image map{map_w_ * canvas.image_scale(), map_h_ * canvas.image_scale(), {}};
  map.rgb.reserve(map.width * map.height);
  const Rgb empty = panel_.horizon_circle ? kPaper : kNoData;
  for (std::int64_t y = 0; y < map.height; ++y) {
    for (std::int64_t x = 0; x < map.width; ++x) {
      const double v = value_at(x, y, map.width, map.height);
      map.rgb.push_back(std::isnan(v) ? empty : color_at(panel_.color_map, bar_.position(v)));
    }
  }
  const auto margin = static_cast<double>(margin_);
  const Clip inside(canvas, lines_of(panel_.outline, origin));
  canvas.image(origin + Point{margin, margin}, static_cast<double>(map_w_),
               static_cast<double>(map_h_), map);
}

Line PanelDrawing::box(Point origin) const {
  const auto w = static_cast<double>(map_w_ + 2 * margin_),
             h = static_cast<double>(map_h_ + 2 * margin_);
  return {origin, origin + Point{w, 0}, origin + Point{w, h}, origin + Point{0, h}, origin};
}

void PanelDrawing::draw_frame(Canvas& canvas, Point origin) const {
  if (!panel_.outline.empty()) {
    canvas.stroke(lines_of(panel_.outline, origin), 1.2, kFrame);
    return;
  }
  canvas.stroke({box(origin)}, 1, kFrame);
  std::vector<Line> ticks;
  const auto below = [&](double x, double length) {
    const Point p = origin + at(x, y_from_);
    ticks.push_back({p, {p.x, p.y + length}});
  };
  const auto beside = [&](double y, double length) {
    const Point p = origin + at(x_from_, y);
    ticks.push_back({{p.x - length, p.y}, p});
  };
  for (const double x : x_ticks_.values) below(x, kTick_px);
  for (const double x : x_ticks_.minor) below(x, kTick_px / 2);
  for (const double y : y_ticks_.values) beside(y, kTick_px);
  for (const double y : y_ticks_.minor) beside(y, kTick_px / 2);
  canvas.stroke(ticks, 1, kFrame);
  // Of labels that would meet, the first stays.
  double free_from = -1e9;
  std::vector<std::size_t> order(x_ticks_.values.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    return at(x_ticks_.values[i], y_from_).x < at(x_ticks_.values[j], y_from_).x;
  });
  for (const std::size_t k : order) {
    const Point p = origin + at(x_ticks_.values[k], y_from_);
    const double half = 0.5 * text_width(x_ticks_.labels[k], tick_style(Align::center));
    if (p.x - half < free_from) continue;
    free_from = p.x + half + 8;
    draw_text(canvas, x_ticks_.labels[k], {p.x, p.y + kTick_px + 4 + kTickText_px},
              tick_style(Align::center));
  }
  std::vector<double> taken;
  for (std::size_t k = 0; k < y_ticks_.values.size(); ++k) {
    const Point p = origin + at(x_from_, y_ticks_.values[k]);
    if (std::any_of(taken.begin(), taken.end(),
                    [&](double y) { return std::abs(y - p.y) < 1.4 * kTickText_px; }))
      continue;
    taken.push_back(p.y);
    draw_text(canvas, y_ticks_.labels[k], {p.x - kTick_px - 4, p.y + kTickText_px / 2},
              tick_style(Align::right));
  }
}

void PanelDrawing::draw_words(Canvas& canvas, Point origin) const {
  const auto w = static_cast<double>(map_w_ + 2 * margin_),
             h = static_cast<double>(map_h_ + 2 * margin_);
  TextStyle label{kLabelText_px, kInk, Align::center, false, false, false};
  const double below = panel_.outline.empty() ? 41 : 26;
  draw_text(canvas, with_exponent(panel_.x_label, x_ticks_.exponent),
            {origin.x + w / 2, origin.y + h + below}, label);
  label.vertical = true;
  draw_text(canvas, with_exponent(panel_.y_label, y_ticks_.exponent),
            {origin.x - static_cast<double>(left_) + kLabelText_px + 2, origin.y + h / 2}, label);
  draw_text(canvas, panel_.title, {origin.x + w / 2, origin.y - 11}, title_style());
}

void PanelDrawing::draw_graticule(Canvas& canvas, Point origin) const {
  std::vector<Line> lines;
  for (const auto& curve : panel_.graticule) {
    const auto more = lines_of(curve, origin);
    lines.insert(lines.end(), more.begin(), more.end());
  }
  {
    const Clip inside(canvas, {box(origin)});
    canvas.stroke(lines, 1, kGraticule, 0.6);
  }
  for (const auto& label : panel_.inner_labels)
    draw_text(canvas, label.label, origin + at(label.x, label.y) + Point{0, kTickText_px / 2},
              {kTickText_px, {255, 255, 255}, Align::center, false, true});
  // Further out where the outline slants.
  const double half = 0.5 * static_cast<double>(map_h_);
  for (const auto& label : panel_.outer_labels) {
    const Point p = at(label.x, label.y);
    const double slant = (p.y - half) / half;
    draw_text(canvas, label.label,
              origin + p + Point{-7, kTickText_px / 2 + 9 * slant * std::abs(slant)},
              tick_style(Align::right));
  }
}

// In a box of paper, so that it is seen on any map; left out where it would hide a quarter of it.
void PanelDrawing::draw_beam(Canvas& canvas, Point origin) const {
  if (panel_.beam.empty()) return;
  const Point zero = at(0, 0);
  Line ellipse;
  double half_w = 0, half_h = 0;
  for (const auto& place : panel_.beam) {
    const Point p = at(place.x, place.y);
    ellipse.push_back({p.x - zero.x, p.y - zero.y});
    half_w = std::max(half_w, std::abs(p.x - zero.x));
    half_h = std::max(half_h, std::abs(p.y - zero.y));
  }
  const auto w = static_cast<double>(map_w_), h = static_cast<double>(map_h_);
  const double box_w = std::round(2 * half_w + 12), box_h = std::round(2 * half_h + 12);
  if (box_w > 0.5 * w || box_h > 0.5 * h) return;
  const Point corner{origin.x + 8, origin.y + h - 8 - box_h};
  const Line frame{corner, corner + Point{box_w, 0}, corner + Point{box_w, box_h},
                   corner + Point{0, box_h}, corner};
  canvas.fill(frame, kPaper);
  canvas.stroke({frame}, 1, kFrame);
  for (Point& p : ellipse) p = corner + Point{0.5 * box_w, 0.5 * box_h} + p;
  canvas.stroke({ellipse}, 1.5, kInk);
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
  if (is_chart()) {
    draw_grid_lines(canvas, origin);
    draw_series(canvas, origin);
  } else {
    draw_map(canvas, origin);
    draw_graticule(canvas, origin);
    draw_beam(canvas, origin);
  }
  if (panel_.horizon_circle) draw_horizon(canvas, origin);
  draw_frame(canvas, origin);
  draw_words(canvas, origin);
  draw_marks(canvas, origin);
  if (is_chart()) {
    draw_legend(canvas, origin);
    return;
  }
  const auto w = static_cast<double>(map_w_ + 2 * margin_),
             h = static_cast<double>(map_h_ + 2 * margin_);
  const double point = (bar_.clipped_high ? 6 : 0) - (bar_.clipped_low ? 6 : 0);
  bar_.draw(canvas, {origin.x + w + kBarGap_px, origin.y + 0.5 * (h - bar_height_) + point},
            bar_height_);
}

}  // namespace ryle::plot
