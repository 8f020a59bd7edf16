// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/plot/canvas.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ryle/core/checked.hpp"
#include "ryle/core/units.hpp"

namespace ryle::plot {
namespace {

double distance(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y;
  const double length2 = dx * dx + dy * dy;
  const double along =
      length2 > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length2, 0.0, 1.0) : 0;
  return std::hypot(p.x - a.x - along * dx, p.y - a.y - along * dy);
}

std::int64_t to_int(double v) { return static_cast<std::int64_t>(v); }

struct Box {
  double left = std::numeric_limits<double>::max(), top = left;
  double right = -left, bottom = -left;
  void include(Point p) {
    left = std::min(left, p.x);
    right = std::max(right, p.x);
    top = std::min(top, p.y);
    bottom = std::max(bottom, p.y);
  }
};

}  // namespace

Canvas::Canvas(std::int64_t width, std::int64_t height, Rgb background)
    : width_(width),
      height_(height),
      rgb_(static_cast<std::size_t>(checked_product({width, height, 3}, "picture"))) {
  fill(0, 0, width, height, background);
}

Rgb Canvas::pixel(std::int64_t x, std::int64_t y) const {
  const auto at = static_cast<std::size_t>(3 * (y * width_ + x));
  return {rgb_[at], rgb_[at + 1], rgb_[at + 2]};
}

void Canvas::set(std::int64_t x, std::int64_t y, Rgb color) {
  if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
  const auto at = static_cast<std::size_t>(3 * (y * width_ + x));
  rgb_[at] = color.r;
  rgb_[at + 1] = color.g;
  rgb_[at + 2] = color.b;
}

void Canvas::blend(std::int64_t x, std::int64_t y, Rgb color, double coverage) {
  const Rgb below = pixel(x, y);
  const auto mix = [coverage](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(std::lround(a + coverage * (b - a)));
  };
  set(x, y, {mix(below.r, color.r), mix(below.g, color.g), mix(below.b, color.b)});
}

void Canvas::fill(std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height,
                  Rgb color) {
  for (std::int64_t j = y; j < y + height; ++j) {
    for (std::int64_t i = x; i < x + width; ++i) set(i, j, color);
  }
}

void Canvas::stroke(const std::vector<Line>& lines, double thickness, Rgb color, double opacity) {
  Box box;
  for (const auto& line : lines) {
    for (const Point p : line) box.include(p);
  }
  if (box.right < box.left) return;
  const double reach = thickness / 2 + 1;
  const auto left = std::max<std::int64_t>(0, to_int(std::floor(box.left - reach)));
  const auto top = std::max<std::int64_t>(0, to_int(std::floor(box.top - reach)));
  const auto right = std::min<std::int64_t>(width_, to_int(std::ceil(box.right + reach)));
  const auto bottom = std::min<std::int64_t>(height_, to_int(std::ceil(box.bottom + reach)));
  if (right <= left || bottom <= top) return;
  // Largest coverage of any segment, pixel by pixel.
  std::vector<float> mask(static_cast<std::size_t>((right - left) * (bottom - top)), 0.0f);
  const auto cover = [&](Point a, Point b) {
    Box part;
    part.include(a);
    part.include(b);
    const auto x0 = std::max(left, to_int(std::floor(part.left - reach)));
    const auto x1 = std::min(right, to_int(std::ceil(part.right + reach)));
    const auto y0 = std::max(top, to_int(std::floor(part.top - reach)));
    const auto y1 = std::min(bottom, to_int(std::ceil(part.bottom + reach)));
    for (auto y = y0; y < y1; ++y) {
      for (auto x = x0; x < x1; ++x) {
        const double d =
            distance({static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5}, a, b);
        const auto value = static_cast<float>(std::clamp(thickness / 2 + 0.5 - d, 0.0, 1.0));
        float& place = mask[static_cast<std::size_t>((y - top) * (right - left) + x - left)];
        place = std::max(place, value);
      }
    }
  };
  for (const auto& line : lines) {
    if (line.size() == 1) cover(line[0], line[0]);
    for (std::size_t k = 1; k < line.size(); ++k) cover(line[k - 1], line[k]);
  }
  for (auto y = top; y < bottom; ++y) {
    for (auto x = left; x < right; ++x) {
      const double value =
          opacity * mask[static_cast<std::size_t>((y - top) * (right - left) + x - left)];
      if (value > 0) blend(x, y, color, value);
    }
  }
}

void Canvas::circle(Point center, double radius, double thickness, Rgb color, double opacity) {
  const int n = std::max(24, static_cast<int>(radius * 1.5));
  Line line;
  for (int k = 0; k <= n; ++k) {
    const double angle_rad = 2 * kPi * k / n;
    line.push_back(
        {center.x + radius * std::cos(angle_rad), center.y + radius * std::sin(angle_rad)});
  }
  stroke({line}, thickness, color, opacity);
}

}  // namespace ryle::plot
