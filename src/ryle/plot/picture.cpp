// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/plot/picture.hpp"

#include <algorithm>

#include "ryle/core/error.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/plot/canvas.hpp"
#include "ryle/plot/panel.hpp"

namespace ryle {
namespace plot {
namespace {

constexpr std::int64_t kOuter_px = 18;
constexpr std::int64_t kGap_px = 26;
constexpr std::int64_t kNarrowest_px = 600;
constexpr std::int64_t kWidestRow_px = 2150;
constexpr double kCaptionLine_px = 19;

struct Row {
  std::vector<const PanelDrawing*> panels;
  std::int64_t width = 0, height = 0;
};

// Four pictures stand two by two, others up to three in a row where they are not wide.
std::vector<Row> arranged(const std::vector<PanelDrawing>& drawings) {
  const std::size_t per_row = drawings.size() == 4 ? 2 : 3;
  std::vector<Row> rows;
  for (std::size_t k = 0; k < drawings.size(); ++k) {
    const bool full = rows.empty() || rows.back().panels.size() == per_row ||
                      rows.back().width + kGap_px + drawings[k].width() > kWidestRow_px;
    if (full) rows.emplace_back();
    Row& row = rows.back();
    row.width += drawings[k].width() + (row.panels.empty() ? 0 : kGap_px);
    row.height = std::max(row.height, drawings[k].height());
    row.panels.push_back(&drawings[k]);
  }
  return rows;
}

Canvas drawn(const std::vector<Panel>& panels, const std::string& caption, Format format) {
  std::vector<PanelDrawing> drawings;
  drawings.reserve(panels.size());
  for (const auto& panel : panels) drawings.emplace_back(panel);
  const auto rows = arranged(drawings);
  std::int64_t width = kNarrowest_px, height = kOuter_px;  // the caption needs room
  for (const auto& row : rows) {
    width = std::max(width, row.width + 2 * kOuter_px);
    height += row.height + kGap_px / 2;
  }
  const TextStyle style{9.5, kCaption, Align::left, false, false, false};
  const auto lines = wrapped(caption, static_cast<double>(width - 2 * kOuter_px), style);
  const auto caption_top = height;
  height +=
      static_cast<std::int64_t>(kCaptionLine_px * static_cast<double>(lines.size())) + kOuter_px;

  Canvas canvas(width, height, kPaper, format);
  std::int64_t y = kOuter_px;
  for (const auto& row : rows) {
    // A single narrow panel stands in the middle.
    std::int64_t x = rows.size() == 1 ? (width - row.width) / 2 : kOuter_px;
    for (const auto* panel : row.panels) {
      panel->draw(canvas, x, y);
      x += panel->width() + kGap_px;
    }
    y += row.height + kGap_px / 2;
  }
  for (std::size_t k = 0; k < lines.size(); ++k) {
    draw_text(
        canvas, lines[k],
        {static_cast<double>(kOuter_px),
         static_cast<double>(caption_top) + kCaptionLine_px * (static_cast<double>(k) + 0.75)},
        style);
  }
  return canvas;
}

}  // namespace

}  // namespace plot

void require_picture(const std::string& path, const std::string& option) {
  if (!path.empty()) static_cast<void>(plot::format_of(path, option));
}

void write_picture(const std::string& path, const std::vector<Panel>& panels,
                   const std::string& caption, bool overwrite) {
  if (panels.empty()) throw ConfigError("picture " + path + ": no panel to draw");
  publish_bytes(path, plot::drawn(panels, caption, plot::format_of(path)).file(), overwrite);
}

}  // namespace ryle
