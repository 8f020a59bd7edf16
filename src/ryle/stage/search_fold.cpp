// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/stage/search_fold.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/core/version.hpp"
#include "ryle/engine/search/dispersion.hpp"
#include "ryle/product/picture.hpp"
#include "ryle/product/publish.hpp"

namespace ryle::stage {
namespace {

/// Sum of all channels, each less its mean over its rms, shifted by whole samples. NaN where no
/// channel has data.
std::vector<float> dedispersed(FilterbankReader& reader, const FoldOptions& o) {
  const FilterbankInfo& info = reader.info();
  const auto n = static_cast<std::size_t>(info.n_samples);
  std::vector<float> data(static_cast<std::size_t>(info.n_channels) * n);
  reader.read(0, info.n_samples, data.data(), info.n_samples);
  if (info.n_channels == 1) return data;
  search::Band band{info.channel_center_hz, info.channel_width_hz, info.sample_interval_s,
                    search::dispersion_constant(o.k_dm)};
  const std::int64_t longest = std::llround(band.delay_samples(0, o.dm_pc_cm3));
  if (longest >= info.n_samples)
    throw ConfigError(fmt::format("fold: DM {} sweeps {} samples, the file holds {}", o.dm_pc_cm3,
                                  longest, info.n_samples));
  std::vector<float> series(n - static_cast<std::size_t>(longest), 0.0f);
  for (std::int64_t c = 0; c < info.n_channels; ++c) {
    const float* x = data.data() + static_cast<std::size_t>(c) * n;
    double count = 0, sum = 0, squares = 0;
    for (std::size_t t = 0; t < n; ++t) {
      if (!std::isfinite(x[t])) continue;
      ++count;
      sum += static_cast<double>(x[t]);
      squares += static_cast<double>(x[t]) * static_cast<double>(x[t]);
    }
    const double mean = count > 0 ? sum / count : 0;
    const double rms = count > 0 ? std::sqrt(std::max(0.0, squares / count - mean * mean)) : 0;
    if (!(rms > 0)) continue;
    const std::int64_t shift = std::llround(band.delay_samples(c, o.dm_pc_cm3));
    for (std::size_t t = 0; t < series.size(); ++t) {
      const float v = x[t + static_cast<std::size_t>(shift)];
      if (std::isfinite(v)) series[t] += static_cast<float>((static_cast<double>(v) - mean) / rms);
    }
  }
  return series;
}

void write_text(const FoldOptions& o, const FoldSummary& s) {
  const auto profile = s.fold.profile();
  std::string text = fmt::format(
      "# {} folded by Ryle {}: period {:.12g} s, {} bins, reduced chi2 {:.3f}\n# phase mean snr\n",
      s.source_name, version(), s.period_s, profile.size(), s.reduced_chi2);
  const double error = std::sqrt(s.fold.variance * static_cast<double>(profile.size()) /
                                 static_cast<double>(std::max<std::int64_t>(1, s.n_samples)));
  for (std::size_t b = 0; b < profile.size(); ++b)
    text += fmt::format("{:.6f} {:.9g} {:.4f}\n",
                        (static_cast<double>(b) + 0.5) / static_cast<double>(profile.size()),
                        profile[b], error > 0 ? (profile[b] - s.fold.mean) / error : 0.0);
  publish_bytes(o.text, text, o.overwrite);
}

/// Sub-integrations against phase, two turns, and the profile as the strip of all of them.
void write_picture(const FoldOptions& o, const FoldSummary& s) {
  const std::int64_t bins = s.fold.config.n_bins,
                     subs = static_cast<std::int64_t>(s.fold.middle_s.size());
  const auto panel_of = [&](std::int64_t rows, const std::string& title) {
    Panel p;
    p.title = title;
    p.n_rows = rows;
    p.n_columns = 2 * bins;
    p.x_max = 2;
    p.x_label = "phase, turns";
    p.first_row_at_top = false;
    p.color_label = "mean";
    return p;
  };
  Panel rows = panel_of(subs, "sub-integrations");
  rows.y_label = "time, s";
  rows.y_max = s.duration_s;
  for (std::int64_t k = 0; k < subs; ++k) {
    for (std::int64_t b = 0; b < 2 * bins; ++b) {
      const auto at = static_cast<std::size_t>(k * bins + b % bins);
      rows.values.push_back(
          s.fold.counts[at] > 0
              ? static_cast<float>(s.fold.sums[at] / static_cast<double>(s.fold.counts[at]) -
                                   s.fold.mean)
              : std::nanf(""));
    }
  }
  Panel strip = panel_of(8, "profile");
  strip.y_label = "";
  const auto profile = s.fold.profile();
  for (int k = 0; k < 8; ++k)
    for (std::int64_t b = 0; b < 2 * bins; ++b)
      strip.values.push_back(
          static_cast<float>(profile[static_cast<std::size_t>(b % bins)] - s.fold.mean));
  write_png(o.picture, {rows, strip},
            fmt::format("{}, period {:.9g} s, reduced chi2 {:.1f}, {} bins, Ryle {}", s.source_name,
                        s.period_s, s.reduced_chi2, bins, version()),
            o.overwrite);
}

}  // namespace

FoldSummary fold_file(const FoldOptions& o) {
  if (!(o.period_s > 0)) throw ConfigError("fold: give --period SECONDS (topocentric)");
  const auto reader = open_filterbank(o.file, o.input);
  const FilterbankInfo& info = reader->info();
  const std::vector<float> series = dedispersed(*reader, o);
  search::FoldConfig config;
  config.f0_hz = 1 / o.period_s;
  config.f1_hz_per_s = -o.period_derivative / (o.period_s * o.period_s);
  config.n_bins = o.n_bins;
  FoldSummary s;
  s.duration_s = static_cast<double>(series.size()) * info.sample_interval_s;
  s.fold = o.search ? search::fold_search(series, info.sample_interval_s, config,
                                          o.drift_turns / s.duration_s)
                    : search::fold(series, info.sample_interval_s, config);
  s.period_s = 1 / s.fold.config.f0_hz;
  s.reduced_chi2 = s.fold.reduced_chi2();
  s.n_samples = static_cast<std::int64_t>(series.size());
  s.source_name = info.source_name;
  s.start_mjd_utc = info.start_mjd_utc;
  s.warnings = info.warnings;
  if (!o.text.empty()) {
    write_text(o, s);
    s.products.push_back(o.text);
  }
  if (!o.picture.empty()) {
    write_picture(o, s);
    s.products.push_back(o.picture);
  }
  return s;
}

}  // namespace ryle::stage
