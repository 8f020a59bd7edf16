// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_fold_products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "ryle/core/version.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/plot/picture.hpp"

namespace ryle::pipeline {
namespace {

std::string edge_text(const FoldedPulsar& head) {
  if (!head.at_edge) return "";
  return fmt::format("; at the edge of the periods searched, {:.9g} .. {:.9g} s", head.shortest_s,
                     head.longest_s);
}

void write_fold_text(const FoldOutputs& o, const search::Fold& fold, const FoldedPulsar& head) {
  const auto profile = fold.profile();
  const auto snr = profile_snr(fold);
  std::string text = fmt::format(
      "# {} folded by Ryle {}: period {:.12g} s, {} bins, reduced chi2 {:.3f}{}\n# phase mean "
      "snr\n",
      head.source, version(), head.period_s, profile.size(), head.reduced_chi2, edge_text(head));
  for (std::size_t b = 0; b < profile.size(); ++b)
    text += fmt::format("{:.6f} {:.9g} {:.4f}\n",
                        (static_cast<double>(b) + 0.5) / static_cast<double>(profile.size()),
                        profile[b], snr[b]);
  publish_bytes(o.text, text, o.overwrite);
}

Panel fold_panel(std::int64_t rows, std::int64_t bins, const std::string& title) {
  Panel p;
  p.title = title;
  p.n_rows = rows;
  p.n_columns = 2 * bins;
  p.x_max = 2;
  p.x_label = "phase, turns";
  p.first_row_at_top = false;
  p.color_label = "mean";
  return p;
}

/// Two turns of the profile, as a line with the error of each bin: rms of a sample / sqrt(n).
Panel profile_panel(const search::Fold& fold, const std::string& unit) {
  const std::int64_t bins = fold.config.n_bins;
  Panel p = fold_panel(0, bins, "profile and its error");
  p.y_label = unit;
  p.y_max = p.y_min;  // the range of the line
  Panel::Series line;
  const auto profile = fold.profile();
  const auto snr = profile_snr(fold);
  for (std::int64_t b = 0; b < 2 * bins; ++b) {
    const auto at = static_cast<std::size_t>(b % bins);
    const double value = profile[at] - fold.mean;
    const double error = snr[at] != 0 ? value / snr[at] : 0;
    line.values.push_back(static_cast<float>(value));
    line.low.push_back(static_cast<float>(value - error));
    line.high.push_back(static_cast<float>(value + error));
  }
  p.series.push_back(std::move(line));
  return p;
}

Panel subs_panel(const search::Fold& fold, const std::string& unit) {
  const std::int64_t bins = fold.config.n_bins, subs = std::ssize(fold.middle_s);
  Panel p = fold_panel(subs, bins, "sub-integrations");
  p.y_label = "time, s";
  p.y_max = fold.duration_s;
  p.color_label = unit;
  for (std::int64_t k = 0; k < subs; ++k) {
    for (std::int64_t b = 0; b < 2 * bins; ++b) {
      const auto at = static_cast<std::size_t>(k * bins + b % bins);
      p.values.push_back(
          fold.counts[at] > 0
              ? static_cast<float>(fold.sums[at] / static_cast<double>(fold.counts[at]) - fold.mean)
              : std::nanf(""));
    }
  }
  return p;
}

/// Channels joined to at most 64 bands, each channel in units of its rms.
Panel bands_panel(const search::FoldCube& cube, const FoldedPulsar& head, const std::string& unit) {
  const std::int64_t channels = cube.n_channels, bins = cube.n_bins;
  const std::int64_t per_band = (channels + 63) / 64, bands = (channels + per_band - 1) / per_band;
  Panel p = fold_panel(bands, bins, "bands");
  p.y_label = "frequency, MHz";
  p.color_label = unit;
  const double width_mhz =
      (head.center_hz.back() - head.center_hz.front()) * 1e-6 / static_cast<double>(channels - 1);
  p.y_min = head.center_hz.front() * 1e-6 - 0.5 * width_mhz;
  p.y_max = p.y_min + width_mhz * static_cast<double>(bands * per_band);
  for (std::int64_t band = 0; band < bands; ++band) {
    std::vector<double> sums(bins), counts(sums.size());
    for (std::int64_t s = 0; s < cube.n_subs(); ++s)
      for (std::int64_t c = band * per_band; c < std::min(channels, (band + 1) * per_band); ++c) {
        const auto channel = static_cast<std::size_t>(c);
        if (!(cube.rms[channel] > 0)) continue;
        for (std::size_t b = 0; b < sums.size(); ++b) {
          const auto at = static_cast<std::size_t>((s * channels + c) * bins) + b;
          const auto n = static_cast<double>(cube.counts[at]);
          sums[b] +=
              (static_cast<double>(cube.sums[at]) - n * cube.mean[channel]) / cube.rms[channel];
          counts[b] += n;
        }
      }
    for (std::size_t b = 0; b < 2 * sums.size(); ++b) {
      const std::size_t at = b % sums.size();
      p.values.push_back(counts[at] > 0 ? static_cast<float>(sums[at] / counts[at])
                                        : std::nanf(""));
    }
  }
  return p;
}

void write_fold_picture(const FoldOutputs& o, const search::Fold& fold,
                        const search::FoldCube* cube, const FoldedPulsar& head) {
  const bool has_bands = cube != nullptr && cube->n_channels > 1 && cube->n_subs() > 0;
  const std::string unit =
      head.center_hz.size() > 1 ? "power less its mean, rms of a channel" : "power less its mean";
  std::vector<Panel> panels{profile_panel(fold, unit), subs_panel(fold, unit)};
  if (has_bands) panels.push_back(bands_panel(*cube, head, unit + ", rms of a channel"));
  write_picture(
      o.picture, panels,
      fmt::format("{}, period {:.9g} s, DM {:.6g} pc/cm3, reduced chi2 {:.1f}, {} bins, {}; "
                  "Ryle {}{}",
                  head.source, head.period_s, head.dm_pc_cm3, head.reduced_chi2, fold.config.n_bins,
                  head.file, version(), edge_text(head)),
      o.overwrite);
}

}  // namespace

search::PhaseModel predicted_phase(const PulsarClock& clock, std::int64_t start_tai_ns,
                                   double duration_s) {
  // Earth's rotation is the fastest thing in it: with steps of a minute the fourth derivative,
  // F0 21 ms (2 pi / day)^4, leaves 3e-13 F0 turns.
  search::PhaseModel model;
  model.step_s = std::clamp(duration_s, 1.0, 60.0);
  const auto n = static_cast<std::int64_t>(std::ceil(duration_s / model.step_s)) + 3;
  for (std::int64_t k = 0; k < n; ++k)
    model.turns.push_back(
        clock.turns(start_tai_ns + std::llround(static_cast<double>(k - 1) * model.step_s * 1e9),
                    start_tai_ns));
  return model;
}

std::vector<double> profile_snr(const search::Fold& fold) {
  const auto profile = fold.profile();
  std::vector<double> counts(profile.size(), 0.0), snr;
  for (std::size_t k = 0; k < fold.counts.size(); ++k)
    counts[k % profile.size()] += static_cast<double>(fold.counts[k]);
  for (std::size_t b = 0; b < profile.size(); ++b)
    snr.push_back(
        fold.variance > 0 ? (profile[b] - fold.mean) * std::sqrt(counts[b] / fold.variance) : 0.0);
  return snr;
}

std::vector<std::string> write_fold_products(const FoldOutputs& o, const search::Fold& fold,
                                             const search::FoldCube* cube, FoldedPulsar head) {
  std::vector<std::string> products;
  if (!o.text.empty()) {
    write_fold_text(o, fold, head);
    products.push_back(o.text);
  }
  if (!o.picture.empty()) {
    write_fold_picture(o, fold, cube, head);
    products.push_back(o.picture);
  }
  if (!o.fits.empty() && cube != nullptr) {
    head.n_bins = cube->n_bins;
    head.begin_s = cube->begin_s;
    head.end_s = cube->end_s;
    head.mean = cube->mean;
    head.rms = cube->rms;
    head.sums = cube->sums;
    head.counts = cube->counts;
    head.profile = fold.profile();
    head.profile_snr = profile_snr(fold);
    write_fold_fits(o.fits, head, o.overwrite);
    products.push_back(o.fits);
  }
  return products;
}

}  // namespace ryle::pipeline
