// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ryle/core/version.hpp"
#include "ryle/product/candidate_file.hpp"
#include "ryle/product/picture_canvas.hpp"
#include "ryle/product/picture_panel.hpp"
#include "ryle/product/picture_png.hpp"
#include "ryle/product/picture_ticks.hpp"
#include "ryle/product/publish.hpp"

namespace ryle {
namespace {

using picture::Align;
using picture::Canvas;
using picture::kInk;
using picture::kPaper;
using picture::Line;
using picture::PanelDrawing;
using picture::Rgb;
using picture::TextStyle;

constexpr Rgb kSoft{170, 174, 182};
constexpr Rgb kModel{214, 84, 38};
constexpr std::int64_t kProfileWidth = 460, kProfileHeight = 240;

Panel heat_map(const CandidatePicture& p, bool dm_plane, const SearchDescription& s) {
  Panel panel;
  panel.values = dm_plane ? p.dm_time : p.waterfall;
  panel.n_rows = dm_plane ? p.n_dms : p.n_frequencies;
  panel.n_columns = p.n_times;
  panel.title = dm_plane ? "dispersion measure" : "dedispersed spectrum";
  panel.x_label = "time from the pulse, ms";
  panel.y_label = dm_plane ? "DM, pc/cm3" : "frequency, MHz";
  panel.color_label = "S/N";
  panel.x_min = p.first_time_s * 1e3;
  panel.x_max = p.last_time_s * 1e3;
  panel.y_min = dm_plane ? p.dm_low : s.low_hz * 1e-6;
  panel.y_max = dm_plane ? p.dm_high : s.high_hz * 1e-6;
  panel.first_row_at_top = false;
  panel.color_map = dm_plane ? ColorMap::inferno : ColorMap::viridis;
  return panel;
}

Line curve(const std::vector<float>& values, double left, double top, double low, double high,
           bool steps) {
  Line line;
  const double dx = static_cast<double>(kProfileWidth) / static_cast<double>(values.size());
  for (std::size_t k = 0; k < values.size(); ++k) {
    const double y = top + static_cast<double>(kProfileHeight) *
                               (1 - (static_cast<double>(values[k]) - low) / (high - low));
    const double x = left + dx * static_cast<double>(k);
    if (steps) line.push_back({x, y});
    line.push_back({steps ? x + dx : x + 0.5 * dx, y});
  }
  return line;
}

void draw_profile(Canvas& canvas, const CandidatePicture& p, double left, double top) {
  double low = 0, high = 1;
  for (const float v : p.profile)
    low = std::min(low, static_cast<double>(v)), high = std::max(high, static_cast<double>(v));
  for (const float v : p.model) high = std::max(high, static_cast<double>(v));
  const double margin = 0.06 * (high - low);
  low -= margin;
  high += margin;
  const double right = left + kProfileWidth, bottom = top + kProfileHeight;
  canvas.stroke({{{left, top}, {right, top}, {right, bottom}, {left, bottom}, {left, top}}}, 1.2,
                kInk);
  TextStyle text;
  text.align = Align::right;
  const auto y_ticks = picture::ticks_between(low, high, 6);
  for (std::size_t k = 0; k < y_ticks.values.size(); ++k) {
    const double y = bottom - kProfileHeight * (y_ticks.values[k] - low) / (high - low);
    canvas.stroke({{{left - 5, y}, {left, y}}}, 1.2, kInk);
    picture::draw_text(canvas, y_ticks.labels[k], {left - 8, y + 5}, text);
  }
  text.align = Align::center;
  const double t0 = p.first_time_s * 1e3, t1 = p.last_time_s * 1e3;
  const auto x_ticks = picture::ticks_between(t0, t1, 7);
  for (std::size_t k = 0; k < x_ticks.values.size(); ++k) {
    const double x = left + kProfileWidth * (x_ticks.values[k] - t0) / (t1 - t0);
    canvas.stroke({{{x, bottom}, {x, bottom + 5}}}, 1.2, kInk);
    picture::draw_text(canvas, x_ticks.labels[k], {x, bottom + 20}, text);
  }
  picture::draw_text(canvas, "time from the pulse, ms", {0.5 * (left + right), bottom + 42}, text);
  const double zero = bottom - kProfileHeight * (0 - low) / (high - low);
  canvas.stroke({{{left, zero}, {right, zero}}}, 1, kSoft);
  canvas.stroke({curve(p.profile, left, top, low, high, true)}, 1.6, kInk);
  if (!p.model.empty())
    canvas.stroke({curve(p.model, left, top, low, high, false)}, 2, kModel, 0.85);
  TextStyle title;
  title.bold = true;
  title.cap_height = 12;
  picture::draw_text(canvas, "profile, S/N of a bin", {left, top - 12}, title);
}

}  // namespace

void write_candidate_png(const std::string& path, const SearchDescription& s,
                         const SearchCandidate& c, const CandidatePicture& p, bool overwrite) {
  const Panel waterfall = heat_map(p, false, s), plane = heat_map(p, true, s);
  const PanelDrawing left(waterfall), right(plane);
  const std::int64_t gap = 28, head = 96;
  const std::int64_t profile_box = kProfileHeight + 110;
  const std::int64_t width = left.width() + right.width() + 3 * gap;
  const std::int64_t height = head + profile_box + std::max(left.height(), right.height()) + gap;
  Canvas canvas(width, height, kPaper);
  TextStyle title;
  title.bold = true;
  title.cap_height = 15;
  picture::draw_text(
      canvas,
      fmt::format("candidate {}   S/N {:.1f}   DM {:.2f} ± {:.2f} pc/cm3   width {:.3g} ms",
                  c.number, c.snr, c.dm_pc_cm3, c.dm_error, c.width_s * 1e3),
      {static_cast<double>(gap), 38}, title);
  TextStyle text;
  text.color = kInk;
  const std::string when = c.tai_ns != 0 ? utc_iso(c.tai_ns, 6) + " UTC, " : std::string();
  picture::draw_text(canvas,
                     fmt::format("{}{:.6f} s into {}, arrival at {:.3f} MHz, k_DM {:.4f}", when,
                                 c.time_s, s.file, s.reference_hz * 1e-6, s.k_dm),
                     {static_cast<double>(gap), 64}, text);
  draw_profile(canvas, p, static_cast<double>(gap) + 70, static_cast<double>(head) + 26);
  const std::string facts[] = {
      fmt::format("source   {}", s.source_name),
      fmt::format("telescope   {}", s.telescope),
      fmt::format("boxcar   S/N {:.1f}, {} samples of {:.4g} ms", c.snr_boxcar, c.boxcar_samples,
                  s.sample_interval_s * 1e3),
      fmt::format("trial   {} of {}, DM {:.3f}", c.dm_trial, s.n_trials, c.trial_dm_pc_cm3),
      fmt::format("tokens   {}, masked {:.1f} %", c.members, 100 * c.masked_fraction),
      fmt::format("flags   {}", c.flags.empty() ? "none" : c.flags),
      fmt::format("Ryle {}", version())};
  double y = static_cast<double>(head) + 44;
  for (const auto& line : facts) {
    picture::draw_text(canvas, line, {static_cast<double>(gap + 70 + kProfileWidth + 50), y}, text);
    y += 28;
  }
  left.draw(canvas, gap, head + profile_box);
  right.draw(canvas, 2 * gap + left.width(), head + profile_box);
  publish_bytes(path, picture::png_of(width, height, canvas.rgb()), overwrite);
}

}  // namespace ryle
