// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/plot/products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/plot/sky_parts.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle {
namespace {

constexpr std::int64_t kMatrixChannels = 16;
constexpr std::size_t kMaxLines = 6;  // of a chart that can be told apart

float decibel(double ratio) {
  return ratio > 0 ? static_cast<float>(10 * std::log10(ratio)) : kNaN;
}

// Value at a fraction of the sorted finite values; NaN without any.
float quantile(std::vector<float> values, double fraction) {
  std::erase_if(values, [](float v) { return !std::isfinite(v); });
  if (values.empty()) return kNaN;
  const auto k = static_cast<std::ptrdiff_t>(fraction * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + k, values.end());
  return values[k];
}

std::string width_text(double hz) {
  return hz < 1e6 ? fmt::format("{:.4g} kHz", hz / 1e3) : fmt::format("{:.4g} MHz", hz / 1e6);
}

// "name · 2026-11-21 19:14:02 UTC · 1.28 MHz at 199.68 MHz · 8.0 s"
std::string caption_of(const Observation& observation, std::int64_t start_tai_ns,
                       double duration_s) {
  std::string when = utc_iso(start_tai_ns, 1);
  if (const auto t = when.find('T'); t != std::string::npos) when[t] = ' ';
  const auto& f = observation.frequency;
  const double width_hz = f.channel_width_hz * static_cast<double>(f.n_channels);
  std::string caption = observation.array.name.empty() ? "" : observation.array.name + "  \u00b7  ";
  caption += fmt::format("{} UTC  \u00b7  {:.6g} MHz", when, f.band_center_hz() / 1e6);
  if (width_hz > 0) caption += ", " + width_text(width_hz) + " wide";
  if (duration_s > 0) caption += "  \u00b7  " + plot::duration_text(duration_s);
  return caption;
}

std::string signature() { return fmt::format("  \u00b7  Ryle {}", version()); }

// One signal path as the matrix shows it: its antenna and pol.
struct Path {
  std::int64_t antenna = 0;
  int pol = 0;
};

std::vector<Path> paths_of(const Observation& observation, const VisibilityDump& dump) {
  std::vector<Path> paths;
  for (const auto& input : observation.array.inputs) paths.push_back({input.antenna, input.pol});
  if (!paths.empty()) return paths;
  for (std::int64_t a = 0; n_pairs(a) < dump.n_baselines; ++a) {
    for (int pol = 0; pol * pol < dump.n_pol_products; ++pol) paths.push_back({a, pol});
  }
  return paths;
}

void check_shape(const VisibilityDump& dump) {
  const auto size =
      static_cast<std::size_t>(dump.n_channels * dump.n_baselines * dump.n_pol_products);
  if (size == 0 || dump.data.size() != size || dump.counts.size() != size) {
    throw ConfigError(fmt::format(
        "picture of visibilities: {} values and {} counts for {} x {} x {}", dump.data.size(),
        dump.counts.size(), dump.n_channels, dump.n_baselines, dump.n_pol_products));
  }
}

// <v_p conj(v_q)> over channels [first, end), weighted by the counts; a count of 0 means no data.
struct Mean {
  cf64 value;
  double count = 0;
};
Mean mean_of(const VisibilityDump& dump, const Path& p, const Path& q, std::int64_t first,
             std::int64_t end) {
  const bool swapped = p.antenna > q.antenna;
  const Path& i = swapped ? q : p;
  const Path& j = swapped ? p : q;
  const int n_pols = dump.n_pol_products == 4 ? 2 : 1;
  const std::int64_t baseline = pair_index(i.antenna, j.antenna);
  Mean mean;
  if (baseline >= dump.n_baselines || i.pol >= n_pols || j.pol >= n_pols) return mean;
  for (std::int64_t c = first; c < end; ++c) {
    const auto at = static_cast<std::size_t>(dump.index(c, baseline, n_pols * i.pol + j.pol));
    mean.value += static_cast<double>(dump.counts[at]) * cf64(dump.data[at]);
    mean.count += dump.counts[at];
  }
  if (mean.count > 0) mean.value /= mean.count;
  if (swapped) mean.value = std::conj(mean.value);
  return mean;
}

Panel matrix_panel(std::int64_t n) {
  Panel panel;
  panel.square = true;
  panel.x_label = "input";
  panel.y_label = "input";
  panel.n_rows = panel.n_columns = n;
  panel.values.assign(n * n, kNaN);
  panel.x_min = -0.5;
  panel.x_max = static_cast<double>(n) - 0.5;
  panel.y_min = static_cast<double>(n) - 0.5;  // row 0 on top
  panel.y_max = -0.5;
  return panel;
}

Panel channel_panel(const Observation& observation, std::int64_t n_rows, std::int64_t n_channels) {
  Panel panel;
  const auto& f = observation.frequency;
  panel.x_label = "frequency (MHz)";
  panel.x_min = (f.center_hz(0) - 0.5 * f.channel_width_hz) / 1e6;
  panel.x_max = (f.center_hz(n_channels - 1) + 0.5 * f.channel_width_hz) / 1e6;
  if (!(panel.x_max > panel.x_min)) {
    panel.x_label = "channel";
    panel.x_min = -0.5;
    panel.x_max = static_cast<double>(n_channels) - 0.5;
  }
  panel.n_rows = n_rows;
  panel.n_columns = n_channels;
  panel.color_label = "power (dB, 0 = median)";
  return panel;
}

// Linear power to dB of the median, in place; not positive = no data.
void to_decibel_of_median(std::vector<float>& power) {
  std::vector<float> positive = power;
  std::erase_if(positive, [](float v) { return !(v > 0); });
  const auto median = static_cast<double>(quantile(positive, 0.5));
  for (float& v : power) v = decibel(static_cast<double>(v) / median);
}

// Wide enough that a narrow line of interference is seen, not clipped with the top of the band.
void choose_bandpass_colors(Panel& panel) {
  const auto low = static_cast<double>(quantile(panel.values, 0.005));
  const auto high = static_cast<double>(quantile(panel.values, 0.9995));
  if (!(high > low)) return;
  panel.color_min = low;
  panel.color_max = high;
}

Panel waterfall_panel(const Observation& observation,
                      const std::vector<std::vector<float>>& history, double duration_s) {
  const auto n_channels = history.empty() ? 0 : static_cast<std::int64_t>(history.front().size());
  Panel panel = channel_panel(observation, static_cast<std::int64_t>(history.size()), n_channels);
  panel.title = "Bandpass over time";
  panel.y_label = "time (s)";
  panel.y_min = duration_s > 0 ? duration_s : static_cast<double>(history.size());
  panel.y_max = 0;
  if (!(duration_s > 0)) panel.y_label = "integration";
  for (const auto& row : history) panel.values.insert(panel.values.end(), row.begin(), row.end());
  to_decibel_of_median(panel.values);
  choose_bandpass_colors(panel);
  return panel;
}

/// Autocorrelations of the inputs in dB above the median of them all; NaN: no data.
/// @shape power [path][channel]
struct Spectra {
  std::vector<Path> paths;
  std::int64_t n_channels = 0;
  std::vector<float> power_db;
  float at(std::size_t path, std::int64_t channel) const {
    return power_db[path * static_cast<std::size_t>(n_channels) +
                    static_cast<std::size_t>(channel)];
  }
};

Spectra spectra_of(const Observation& observation, const VisibilityDump& mean) {
  Spectra s{paths_of(observation, mean), mean.n_channels, {}};
  for (const auto& path : s.paths) {
    for (std::int64_t c = 0; c < mean.n_channels; ++c) {
      const Mean power = mean_of(mean, path, path, c, c + 1);
      s.power_db.push_back(power.count > 0 ? static_cast<float>(power.value.real()) : kNaN);
    }
  }
  to_decibel_of_median(s.power_db);
  return s;
}

std::string input_name(const Observation& observation, const Path& path, bool two_pols) {
  const auto a = static_cast<std::size_t>(path.antenna);
  std::string name =
      a < observation.array.antennas.size() ? observation.array.antennas[a].name : "";
  if (name.empty()) name = std::to_string(path.antenna);
  return two_pols ? name + (path.pol == 0 ? " X" : " Y") : name;
}

bool has_two_pols(const Spectra& s) {
  return std::any_of(s.paths.begin(), s.paths.end(), [](const Path& p) { return p.pol != 0; });
}

/// A line an input where they are few; else the median of the inputs of each polarization, with the
/// band between the 10th and the 90th of 100.
Panel lines_panel(const Observation& observation, const Spectra& s) {
  Panel panel = channel_panel(observation, 0, s.n_channels);
  panel.title = "Bandpass of the inputs";
  panel.y_label = "power (dB, 0 = median)";
  panel.y_max = panel.y_min;
  const bool two_pols = has_two_pols(s);
  if (s.paths.size() <= kMaxLines) {
    for (std::size_t k = 0; k < s.paths.size(); ++k) {
      auto& line = panel.series.emplace_back();
      line.name = input_name(observation, s.paths[k], two_pols);
      for (std::int64_t c = 0; c < s.n_channels; ++c) line.values.push_back(s.at(k, c));
    }
    return panel;
  }
  for (int pol = 0; pol <= (two_pols ? 1 : 0); ++pol) {
    auto& line = panel.series.emplace_back();
    std::int64_t n = 0;
    for (const auto& path : s.paths) n += path.pol == pol ? 1 : 0;
    line.name = fmt::format("{}median of {} inputs, 10 to 90 %",
                            two_pols ? (pol == 0 ? "X: " : "Y: ") : "", n);
    for (std::int64_t c = 0; c < s.n_channels; ++c) {
      std::vector<float> values;
      for (std::size_t k = 0; k < s.paths.size(); ++k)
        if (s.paths[k].pol == pol) values.push_back(s.at(k, c));
      line.values.push_back(quantile(values, 0.5));
      line.low.push_back(quantile(values, 0.1));
      line.high.push_back(quantile(values, 0.9));
    }
  }
  return panel;
}

Panel inputs_panel(const Observation& observation, const Spectra& s) {
  Panel panel = channel_panel(observation, std::ssize(s.paths), s.n_channels);
  panel.title = "Bandpass of every input";
  panel.y_label = "input";
  panel.y_min = static_cast<double>(s.paths.size()) - 0.5;
  panel.y_max = -0.5;
  panel.values = s.power_db;
  choose_bandpass_colors(panel);
  return panel;
}

/// Median over the band of every input: what is dead or loud stands apart.
Panel levels_panel(const Spectra& s) {
  Panel panel;
  panel.title = "Level of the inputs";
  panel.x_label = "input";
  panel.y_label = "median power (dB, 0 = median of all)";
  panel.n_columns = std::ssize(s.paths);
  panel.x_min = -0.5;
  panel.x_max = static_cast<double>(s.paths.size()) - 0.5;
  panel.y_max = panel.y_min;
  const bool two_pols = has_two_pols(s);
  for (int pol = 0; pol <= (two_pols ? 1 : 0); ++pol) {
    auto& points = panel.series.emplace_back();
    points.style = Panel::Series::Style::points;
    if (two_pols) points.name = pol == 0 ? "X" : "Y";
    for (std::size_t k = 0; k < s.paths.size(); ++k) {
      std::vector<float> values;
      for (std::int64_t c = 0; c < s.n_channels; ++c) values.push_back(s.at(k, c));
      points.values.push_back(s.paths[k].pol == pol ? quantile(values, 0.5) : kNaN);
    }
  }
  return panel;
}

}  // namespace

void write_visibility_matrix_picture(const std::string& path, const VisibilityDump& mean,
                                     const Observation& observation, bool overwrite) {
  check_shape(mean);
  // One pol after the other: four blocks XX, XY, YX, YY instead of a checkerboard.
  auto paths = paths_of(observation, mean);
  std::stable_sort(paths.begin(), paths.end(),
                   [](const Path& a, const Path& b) { return a.pol < b.pol; });
  const bool two_pols = !paths.empty() && paths.front().pol != paths.back().pol;
  const auto n = static_cast<std::int64_t>(paths.size());
  const std::int64_t width = std::min(kMatrixChannels, mean.n_channels);
  const std::int64_t first = (mean.n_channels - width) / 2;
  Panel amplitude = matrix_panel(n), phase = matrix_panel(n);
  double auto_power = 0;
  std::int64_t n_autos = 0;
  for (const auto& p : paths) {
    const Mean power = mean_of(mean, p, p, first, first + width);
    if (power.count == 0) continue;
    auto_power += power.value.real();
    ++n_autos;
  }
  const double reference =
      n_autos > 0 && auto_power > 0 ? auto_power / static_cast<double>(n_autos) : 1;
  std::vector<float> off_diagonal;
  for (std::int64_t p = 0; p < n; ++p) {
    for (std::int64_t q = 0; q < n; ++q) {
      const Mean v = mean_of(mean, paths[p], paths[q], first, first + width);
      if (v.count == 0) continue;
      const auto at = static_cast<std::size_t>(p * n + q);
      amplitude.values[at] = decibel(std::abs(v.value) / reference);
      phase.values[at] = static_cast<float>(std::arg(v.value) / kDegree_rad);
      if (p != q) off_diagonal.push_back(amplitude.values[at]);
    }
  }
  // The colors follow the cross-correlations; the autocorrelations on the diagonal may saturate.
  const auto low = static_cast<double>(quantile(off_diagonal, 0.02));
  const auto high = static_cast<double>(quantile(off_diagonal, 0.998));
  if (high > low) {
    amplitude.color_min = low;
    amplitude.color_max = high;
  }
  for (Panel* panel : {&amplitude, &phase}) {
    panel->x_label = panel->y_label = two_pols ? "input (X of every antenna, then Y)" : "input";
  }
  amplitude.title = "Visibility amplitude";
  amplitude.color_label = n_autos > 0 ? "|V| (dB above the mean autocorrelation)" : "|V| (dB)";
  phase.title = "Visibility phase";
  phase.color_label = "phase (degrees)";
  phase.color_map = ColorMap::twilight;
  phase.color_min = -180;
  phase.color_max = 180;
  const std::string channels =
      mean.n_channels == 1 ? ""
                           : fmt::format("  \u00b7  channels {} to {}", first, first + width - 1);
  write_picture(
      path, {amplitude, phase},
      caption_of(observation, mean.start_tai_ns, mean.interval_s) + channels + signature(),
      overwrite);
}

std::vector<Panel> bandpass_panels(const std::vector<std::vector<float>>& history,
                                   double duration_s, const VisibilityDump& mean,
                                   const Observation& observation) {
  check_shape(mean);
  for (const auto& row : history) {
    if (row.size() != static_cast<std::size_t>(mean.n_channels)) {
      throw ConfigError(fmt::format("picture of the bandpass: a row of {} channels where {} belong",
                                    row.size(), mean.n_channels));
    }
  }
  std::vector<Panel> panels;
  const Spectra spectra = spectra_of(observation, mean);
  panels.push_back(lines_panel(observation, spectra));
  if (!history.empty()) panels.push_back(waterfall_panel(observation, history, duration_s));
  if (spectra.paths.size() > kMaxLines) {
    panels.push_back(levels_panel(spectra));
    panels.push_back(inputs_panel(observation, spectra));
  }
  return panels;
}

void write_bandpass_picture(const std::string& path, const std::vector<std::vector<float>>& history,
                            double duration_s, const VisibilityDump& mean,
                            const Observation& observation, bool overwrite) {
  const auto panels = bandpass_panels(history, duration_s, mean, observation);
  write_picture(path, panels, caption_of(observation, mean.start_tai_ns, duration_s) + signature(),
                overwrite);
}

void write_bandpass_picture(const std::string& path, const std::vector<VisibilityDump>& dumps,
                            const Observation& observation, bool overwrite) {
  if (dumps.empty()) throw ConfigError("picture of the bandpass: no integration");
  std::vector<std::vector<float>> history;
  VisibilityDump mean = dumps.front();
  std::vector<cf64> sum(mean.data.size());
  std::vector<double> count(mean.data.size());
  double duration_s = 0;
  for (const auto& dump : dumps) {
    check_shape(dump);
    if (dump.data.size() != mean.data.size())
      throw ConfigError("picture of the bandpass: integrations differ in shape");
    for (std::size_t k = 0; k < sum.size(); ++k) {
      sum[k] += static_cast<double>(dump.counts[k]) * cf64(dump.data[k]);
      count[k] += dump.counts[k];
    }
    std::vector<float> row;
    const auto paths = paths_of(observation, dump);
    for (std::int64_t c = 0; c < dump.n_channels; ++c) {
      double power = 0, n = 0;
      for (const auto& p : paths) {
        const Mean v = mean_of(dump, p, p, c, c + 1);
        if (v.count == 0) continue;
        power += v.value.real();
        ++n;
      }
      row.push_back(n > 0 ? static_cast<float>(power / n) : kNaN);
    }
    history.push_back(std::move(row));
    duration_s += dump.interval_s;
  }
  for (std::size_t k = 0; k < sum.size(); ++k) {
    mean.data[k] = count[k] > 0 ? cf32(sum[k] / count[k]) : cf32{};
    mean.counts[k] = static_cast<std::uint32_t>(std::min(count[k], 4294967295.0));
  }
  write_bandpass_picture(path, history, duration_s, mean, observation, overwrite);
}

}  // namespace ryle
