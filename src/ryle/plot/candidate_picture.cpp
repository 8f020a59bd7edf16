// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ryle/core/version.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/beam/candidate_file.hpp"
#include "ryle/plot/canvas.hpp"
#include "ryle/plot/panel.hpp"

namespace ryle {
namespace {

using plot::Canvas;
using plot::kInk;
using plot::kPaper;
using plot::PanelDrawing;
using plot::TextStyle;

constexpr std::int64_t kGap_px = 28, kHead_px = 86;

Panel heat_map(const CandidatePicture& p, bool dm_plane, const SearchDescription& s) {
  Panel panel;
  panel.values = dm_plane ? p.dm_time : p.waterfall;
  panel.n_rows = dm_plane ? p.n_dms : p.n_frequencies;
  panel.n_columns = p.n_times;
  panel.title = dm_plane ? "dispersion measure against time" : "dedispersed spectrum";
  panel.x_label = "time from the pulse (ms)";
  panel.y_label = dm_plane ? "DM (pc/cm3)" : "frequency (MHz)";
  panel.color_label = "S/N of a cell";
  panel.x_min = p.first_time_s * 1e3;
  panel.x_max = p.last_time_s * 1e3;
  panel.y_min = dm_plane ? p.dm_low : s.low_hz * 1e-6;
  panel.y_max = dm_plane ? p.dm_high : s.high_hz * 1e-6;
  panel.first_row_at_top = false;
  if (dm_plane) {  // the pulse is a few cells: its peak is the end of the scale
    float low = std::numeric_limits<float>::max(), high = -low;
    for (const float v : panel.values) {
      if (!std::isfinite(v)) continue;
      low = std::min(low, v);
      high = std::max(high, v);
    }
    if (high > low) panel.color_min = low, panel.color_max = high;
  }
  panel.color_map = dm_plane ? ColorMap::inferno : ColorMap::viridis;
  return panel;
}

Panel profile_panel(const CandidatePicture& p) {
  Panel panel;
  panel.title = "profile";
  panel.x_label = "time from the pulse (ms)";
  panel.y_label = "S/N of a bin";
  panel.x_min = p.first_time_s * 1e3;
  panel.x_max = p.last_time_s * 1e3;
  panel.y_max = panel.y_min;
  panel.n_columns = p.n_times;
  panel.series.push_back({"data", p.profile, {}, {}, Panel::Series::Style::steps});
  if (!p.model.empty()) panel.series.push_back({"fitted pulse", p.model});
  return panel;
}

}  // namespace

void write_candidate_picture(const std::string& path, const SearchDescription& s,
                             const SearchCandidate& c, const CandidatePicture& p, bool overwrite) {
  const Panel waterfall = heat_map(p, false, s), plane = heat_map(p, true, s),
              line = profile_panel(p);
  const PanelDrawing left(waterfall), right(plane), top(line);
  const std::int64_t width = left.width() + right.width() + 3 * kGap_px;
  const std::int64_t below = kHead_px + top.height() + kGap_px / 2;
  const std::int64_t height = below + std::max(left.height(), right.height()) + kGap_px;
  Canvas canvas(width, height, kPaper, plot::format_of(path));
  TextStyle title;
  title.bold = true;
  title.cap_height = 15;
  plot::draw_text(
      canvas,
      fmt::format("candidate {}   S/N {:.1f}   DM {:.2f} ± {:.2f} pc/cm3   width {:.3g} ms",
                  c.number, c.snr, c.dm_pc_cm3, c.dm_error, c.width_s * 1e3),
      {static_cast<double>(kGap_px), 38}, title);
  TextStyle text;
  text.color = kInk;
  const std::string when = c.tai_ns != 0 ? utc_iso(c.tai_ns, 6) + " UTC  ·  " : std::string();
  plot::draw_text(canvas,
                  fmt::format("{}{:.6f} s into {}  ·  arrival at {:.3f} MHz  ·  k_DM {:.4f}", when,
                              c.time_s, s.file, s.reference_hz * 1e-6, s.k_dm),
                  {static_cast<double>(kGap_px), 64}, text);
  const std::string metadata[] = {
      fmt::format("source   {}", s.source_name),
      fmt::format("telescope   {}", s.telescope),
      fmt::format("boxcar   S/N {:.1f}, {} samples of {:.4g} ms", c.snr_boxcar, c.boxcar_samples,
                  s.sample_interval_s * 1e3),
      fmt::format("trial   {} of {}, DM {:.3f} pc/cm3", c.dm_trial, s.n_trials, c.trial_dm_pc_cm3),
      c.scattering_s > 0 ? fmt::format("scattered   {:.3g} ± {:.2g} ms", c.scattering_s * 1e3,
                                       c.scattering_error_s * 1e3)
                         : "scattered   ",
      fmt::format("hits   {}, masked {:.1f} %", c.members, 100 * c.masked_fraction),
      fmt::format("beams   {}", beams_text(c)),
      fmt::format("flags   {}", c.flags.empty() ? "none" : c.flags),
      c.reasons + (c.reasons.empty() ? "   " : ""),
      fmt::format("Ryle {}", version())};
  // Beside the profile, over the plot of the right panel.
  const double words =
      right.place(plane.x_min, plane.y_max).x + static_cast<double>(2 * kGap_px + left.width());
  const double room = static_cast<double>(canvas.width() - kGap_px) - words;
  double y = static_cast<double>(kHead_px) + 60;
  for (const auto& fact : metadata) {
    if (fact.ends_with("   ")) continue;  // not known
    for (const auto& piece : plot::wrapped(fact, room, text)) {
      plot::draw_text(canvas, piece, {words, y}, text);
      y += 22;
    }
    y += 8;
  }
  // The profile stands over the spectrum: both have one time axis.
  const auto shift = static_cast<std::int64_t>(
      std::llround(left.place(waterfall.x_min, 0).x - top.place(line.x_min, 0).x));
  top.draw(canvas, kGap_px + shift, kHead_px);
  left.draw(canvas, kGap_px, below);
  right.draw(canvas, 2 * kGap_px + left.width(), below);
  publish_bytes(path, canvas.file(), overwrite);
}

}  // namespace ryle
