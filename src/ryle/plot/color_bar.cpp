// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>

#include "ryle/plot/panel.hpp"

namespace ryle::plot {
namespace {

constexpr double kBarWidth_px = 16;
constexpr double kBarTick_px = 5;
constexpr double kBarText_px = 9.5;
constexpr double kBarLabel_px = 10.5;
constexpr double kBarPoint_px = 12;  // height of the points at clipped ends
constexpr double kBarSpacing_px = 16;

TextStyle bar_text(double unit) { return {kBarText_px * unit, kInk, Align::left}; }

}  // namespace

std::string with_exponent(const std::string& label, int exponent) {
  if (exponent == 0) return label;
  const std::string factor = "\u00d710^" + std::to_string(exponent);
  return label.empty() ? factor : label + "  (" + factor + ")";
}

Ticks ColorBar::ticks() const { return ticks_between(low, high, 8, map == ColorMap::twilight); }

double ColorBar::position(double value) const {
  const double linear = std::clamp((value - low) / (high - low), 0.0, 1.0);
  return gamma == 1 ? linear : std::pow(linear, gamma);
}

double ColorBar::width() const {
  const Ticks all = ticks();
  double widest = 0;
  for (const auto& text : all.labels) widest = std::max(widest, text_width(text, bar_text(1)));
  const bool has_label = !label.empty() || all.exponent != 0;
  return unit * (kBarWidth_px + kBarTick_px + 4 + widest + (has_label ? 24 : 4));
}

void ColorBar::draw(Canvas& canvas, Point top_left, double height) const {
  const double left = std::round(top_left.x), right = left + std::round(kBarWidth_px * unit);
  const double top = std::round(top_left.y), bottom = std::round(top_left.y + height);
  const auto n_columns = static_cast<std::int64_t>(right - left);
  for (auto y = static_cast<std::int64_t>(top); y < static_cast<std::int64_t>(bottom); ++y) {
    const double place = (bottom - static_cast<double>(y) - 0.5) / (bottom - top);
    canvas.fill(static_cast<std::int64_t>(left), y, n_columns, 1, color_at(map, place));
  }
  // The points continue the color of their end.
  const double middle = 0.5 * (left + right), point = std::round(kBarPoint_px * unit);
  const auto fill_point = [&](double base, double direction, double place) {
    for (std::int64_t k = 0; k < static_cast<std::int64_t>(point); ++k) {
      const double half = 0.5 * (right - left) * (1 - (static_cast<double>(k) + 0.5) / point);
      const double y = base + direction * static_cast<double>(k) - (direction < 0 ? 1 : 0);
      canvas.fill(std::llround(middle - half), static_cast<std::int64_t>(y), std::llround(2 * half),
                  1, color_at(map, place));
    }
  };
  if (clipped_high) fill_point(top, -1, 1);
  if (clipped_low) fill_point(bottom, 1, 0);
  Line rim{{left, bottom}, {left, top}};
  if (clipped_high) rim.push_back({middle, top - point});
  rim.push_back({right, top});
  rim.push_back({right, bottom});
  if (clipped_low) rim.push_back({middle, bottom + point});
  rim.push_back({left, bottom});
  canvas.stroke({rim}, unit, kFrame);

  const Ticks all = ticks();
  double widest = 0, last_y = std::numeric_limits<double>::max();
  for (std::size_t k = 0; k < all.values.size(); ++k) {
    const double y = bottom - position(all.values[k]) * (bottom - top);
    widest = std::max(widest, text_width(all.labels[k], bar_text(unit)));
    if (last_y - y < kBarSpacing_px * unit) continue;  // near the lower end of a square root
    last_y = y;
    canvas.stroke({{{right, y}, {right + kBarTick_px * unit, y}}}, unit, kFrame);
    draw_text(canvas, all.labels[k],
              {right + (kBarTick_px + 4) * unit, y + 0.5 * kBarText_px * unit}, bar_text(unit));
  }
  const TextStyle style{kBarLabel_px * unit, kInk, Align::center, true};
  draw_text(canvas, with_exponent(label, all.exponent),
            {right + (kBarTick_px + 12) * unit + widest + style.cap_height, 0.5 * (top + bottom)},
            style);
}

}  // namespace ryle::plot
