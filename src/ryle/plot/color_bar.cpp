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
  const double middle = 0.5 * (left + right), point = std::round(kBarPoint_px * unit);
  Line rim{{left, bottom}, {left, top}};
  if (clipped_high) rim.push_back({middle, top - point});
  rim.push_back({right, top});
  rim.push_back({right, bottom});
  if (clipped_low) rim.push_back({middle, bottom + point});
  rim.push_back({left, bottom});
  // The points continue the color of their end.
  Image colors{1, std::llround(bottom - top + 2 * point), {}};
  for (std::int64_t y = 0; y < colors.height; ++y)
    colors.rgb.push_back(
        color_at(map, (bottom - top + point - static_cast<double>(y) - 0.5) / (bottom - top)));
  {
    const Clip inside(canvas, {rim});
    canvas.image({left, top - point}, right - left, static_cast<double>(colors.height), colors);
  }
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
