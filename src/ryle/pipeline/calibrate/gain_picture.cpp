// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cmath>

#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/pipeline/calibrate/calibrate_run.hpp"
#include "ryle/plot/picture.hpp"

namespace ryle::pipeline {
namespace {

enum class Quantity : std::uint8_t { amplitude, phase, residual };

float value_of(const GainTable& t, Quantity what, std::size_t k) {
  if (t.flags[k] != 0) return kNaN;
  switch (what) {
    case Quantity::amplitude:
      return static_cast<float>(std::abs(t.gains[k]));
    case Quantity::phase:
      return static_cast<float>(std::arg(t.gains[k]) / kDegree_rad);
    case Quantity::residual:
      break;
  }
  return static_cast<float>(t.chi2[k]);
}

const char* label_of(Quantity what) {
  switch (what) {
    case Quantity::amplitude:
      return "amplitude of the gain";
    case Quantity::phase:
      return "phase, deg";
    case Quantity::residual:
      break;
  }
  return "residual power / its mean";
}

/// One solution: points over antennas, a color a polarization.
Panel chart(const GainTable& t, Quantity what) {
  Panel panel;
  const std::int64_t n = t.observation.array.n_antennas();
  panel.title = label_of(what);
  panel.x_label = "antenna";
  panel.y_label = label_of(what);
  panel.n_columns = n;
  panel.x_min = -0.5;
  panel.x_max = static_cast<double>(n) - 0.5;
  panel.y_min = panel.y_max = 0;
  for (std::int64_t pol = 0; pol < t.n_pols; ++pol) {
    Panel::Series series;
    if (t.n_pols > 1) series.name = pol == 0 ? "X" : "Y";
    series.style = Panel::Series::Style::points;
    for (std::int64_t a = 0; a < n; ++a)
      series.values.push_back(value_of(t, what, t.at(a, 0, pol)));
    panel.series.push_back(std::move(series));
  }
  return panel;
}

/// Antennas against the band; of two polarizations all X, then all Y.
Panel band_map(const GainTable& t, Quantity what) {
  Panel panel;
  const std::int64_t n = t.observation.array.n_antennas();
  panel.title = label_of(what);
  panel.x_label = "frequency, MHz";
  panel.y_label = t.n_pols > 1 ? "antenna: all X, then all Y" : "antenna";
  panel.color_label = label_of(what);
  panel.n_rows = n * t.n_pols;
  panel.n_columns = t.n_channels();
  panel.x_min = (t.center_hz.front() - 0.5 * t.width_hz.front()) * 1e-6;
  panel.x_max = (t.center_hz.back() + 0.5 * t.width_hz.back()) * 1e-6;
  panel.y_min = static_cast<double>(panel.n_rows) - 0.5;
  panel.y_max = -0.5;
  if (what == Quantity::phase) {
    panel.color_map = ColorMap::twilight;
    panel.color_min = -180;
    panel.color_max = 180;
  }
  for (std::int64_t pol = 0; pol < t.n_pols; ++pol)
    for (std::int64_t a = 0; a < n; ++a)
      for (std::int64_t c = 0; c < t.n_channels(); ++c)
        panel.values.push_back(value_of(t, what, t.at(a, c, pol)));
  return panel;
}

}  // namespace

void write_gain_picture(const std::string& path, const CalibrateReport& report, bool overwrite) {
  const GainTable& t = report.table;
  std::vector<Panel> panels;
  for (const Quantity what : {Quantity::amplitude, Quantity::phase, Quantity::residual})
    panels.push_back(t.n_channels() > 1 ? band_map(t, what) : chart(t, what));
  std::string caption =
      t.observation.array.name.empty() ? std::string() : t.observation.array.name + "  \u00b7  ";
  caption += fmt::format("{} UTC  \u00b7  {}", utc_iso(t.middle_tai_ns, 1), t.model);
  for (const GainSetReport& set : report.sets)
    caption += fmt::format("  \u00b7  {}{:.2g} deg error, {} of {} antennas",
                           set.name.empty() ? "" : set.name + ": ", set.sigma_deg, set.n_inputs,
                           t.observation.array.n_antennas());
  caption += fmt::format("  \u00b7  phase of {} = 0  \u00b7  Ryle {}", report.reference, version());
  write_picture(path, panels, caption, overwrite);
}

}  // namespace ryle::pipeline
