// SPDX-License-Identifier: BSD-3-Clause
// Lines with their bands: panels that are charts.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ryle/plot/panel.hpp"

namespace ryle::plot {
namespace {

// Told apart by readers of every color vision (Okabe and Ito 2008).
constexpr std::array<Rgb, 8> kSeriesColors{{{0, 114, 178},
                                            {213, 94, 0},
                                            {0, 158, 115},
                                            {204, 121, 167},
                                            {230, 159, 0},
                                            {86, 180, 233},
                                            {120, 94, 40},
                                            {45, 48, 54}}};
constexpr double kBandOpacity = 0.22;
constexpr double kLegendText_px = 9.5;
constexpr double kLegendRow_px = 18;
constexpr double kLegendSample_px = 26;

Rgb series_color(std::size_t k) { return kSeriesColors[k % kSeriesColors.size()]; }

bool has_legend(const Panel& panel) {
  return std::any_of(panel.series.begin(), panel.series.end(),
                     [](const auto& s) { return !s.name.empty(); });
}

}  // namespace

// The range of all lines and bands, with room above for the legend.
void PanelDrawing::choose_range() {
  if (panel_.y_min != panel_.y_max) return;
  double low = std::numeric_limits<double>::max(), high = -low;
  for (const auto& s : panel_.series) {
    for (const auto* values : {&s.values, &s.low, &s.high}) {
      for (const float v : *values) {
        if (!std::isfinite(v)) continue;
        low = std::min(low, static_cast<double>(v));
        high = std::max(high, static_cast<double>(v));
      }
    }
  }
  if (low > high) low = 0, high = 1;
  const double span = high > low ? high - low : std::max(1e-30, 0.1 * std::abs(high) + 1e-6);
  const auto n_names = static_cast<double>(panel_.series.size());
  const double legend = has_legend(panel_) ? (kLegendRow_px * n_names + 12) : 0;
  const auto height = static_cast<double>(map_h_);
  const double room = std::min(0.5, legend / height);
  y_from_ = low - 0.05 * span;
  y_to_ = high + span * (0.05 + 1.1 * room / (1 - room));
}

void PanelDrawing::draw_grid_lines(Canvas& canvas, Point origin) const {
  std::vector<Line> lines;
  const auto corner = [&](double x, double y) {
    const Point p = at(x, y);
    return Point{origin.x + p.x, origin.y + p.y};
  };
  for (const double x : x_ticks_.values) lines.push_back({corner(x, y_from_), corner(x, y_to_)});
  for (const double y : y_ticks_.values) lines.push_back({corner(x_from_, y), corner(x_to_, y)});
  canvas.stroke(lines, 1, {232, 234, 238});
}

void PanelDrawing::draw_series(Canvas& canvas, Point origin) const {
  const auto w = static_cast<double>(map_w_), n = static_cast<double>(panel_.n_columns);
  const auto height_of = [&](float v) {
    const double y = origin.y + at(x_from_, static_cast<double>(v)).y;
    return std::clamp(y, origin.y, origin.y + static_cast<double>(map_h_));
  };
  const auto x_of = [&](double column) { return origin.x + column / n * w; };
  for (std::size_t s = 0; s < panel_.series.size(); ++s) {
    const auto& [name, values, low, high, style] = panel_.series[s];
    for (std::size_t k = 0; k < low.size();) {
      Line band;  // of columns without a gap: to the right along its top, back along its bottom
      const std::size_t first = k;
      for (; k < low.size() && std::isfinite(low[k]) && std::isfinite(high[k]); ++k)
        for (const double side : {0.0, 1.0})
          band.push_back({x_of(static_cast<double>(k) + side), height_of(high[k])});
      for (std::size_t back = k; back-- > first;)
        for (const double side : {1.0, 0.0})
          band.push_back({x_of(static_cast<double>(back) + side), height_of(low[back])});
      canvas.fill(band, series_color(s), kBandOpacity);
      k = std::max(k, first + 1);
    }
  }
  for (std::size_t s = 0; s < panel_.series.size(); ++s) {
    const auto& series = panel_.series[s];
    const bool steps = series.style == Panel::Series::Style::steps;
    const bool points = series.style == Panel::Series::Style::points;
    std::vector<Line> lines(1);
    for (std::size_t k = 0; k < series.values.size(); ++k) {
      if (!std::isfinite(series.values[k])) {
        lines.emplace_back();
        continue;
      }
      const double y = height_of(series.values[k]), column = static_cast<double>(k);
      if (points) {
        canvas.circle({x_of(column + 0.5), y}, 2.2, 1.8, series_color(s));
      } else if (steps) {
        lines.back().push_back({x_of(column), y});
        lines.back().push_back({x_of(column + 1), y});
      } else {
        lines.back().push_back({x_of(column + 0.5), y});
      }
    }
    canvas.stroke(lines, 2, series_color(s));
  }
}

void PanelDrawing::draw_legend(Canvas& canvas, Point origin) const {
  if (!has_legend(panel_)) return;
  const TextStyle style{kLegendText_px, kInk, Align::left};
  double widest = 0;
  for (const auto& s : panel_.series) widest = std::max(widest, text_width(s.name, style));
  const double left = origin.x + static_cast<double>(map_w_) - widest - kLegendSample_px - 24;
  double y = origin.y + 16;
  for (std::size_t k = 0; k < panel_.series.size(); ++k) {
    const auto& s = panel_.series[k];
    if (s.name.empty()) continue;
    if (s.style == Panel::Series::Style::points)
      canvas.circle({left + 0.5 * kLegendSample_px, y}, 2.2, 1.8, series_color(k));
    else
      canvas.stroke({{{left, y}, {left + kLegendSample_px, y}}}, 2, series_color(k));
    draw_text(canvas, s.name, {left + kLegendSample_px + 8, y + 0.5 * kLegendText_px}, style);
    y += kLegendRow_px;
  }
}

}  // namespace ryle::plot
