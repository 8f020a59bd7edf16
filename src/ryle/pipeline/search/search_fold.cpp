// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_fold.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "ryle/core/error.hpp"
#include "ryle/engine/search/dispersion.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/plot/picture.hpp"
#include "ryle/telescope/pulsar.hpp"

namespace ryle::pipeline {
namespace {

constexpr double kMaxDm_pc_cm3 = 1e6;

void check_numbers(const FoldOptions& o) {
  const auto require = [](bool good, const char* what, double value, const char* limit) {
    if (!good) throw ConfigError(fmt::format("fold: {} {}: must be {}", what, value, limit));
  };
  // A DM below 0 would take samples from before the first.
  require(o.dm_pc_cm3 >= 0 && o.dm_pc_cm3 <= kMaxDm_pc_cm3, "a DM of", o.dm_pc_cm3,
          "0 .. 1e6 pc/cm3");
  require(std::isfinite(o.period_derivative), "a period derivative of", o.period_derivative,
          "a finite number");
  // Four trials a bin and turn: what fold_search() goes through at most.
  const double max_turns = 50'000 / static_cast<double>(std::max<std::int64_t>(o.n_bins, 2));
  require(o.drift_turns >= 0 && o.drift_turns <= max_turns, "--drift", o.drift_turns,
          fmt::format("0 .. {:g} turns with {} bins", max_turns, o.n_bins).c_str());
}

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
  const double sweep = band.delay_samples(0, o.dm_pc_cm3);
  const std::int64_t longest = std::llround(std::min(sweep, static_cast<double>(info.n_samples)));
  if (longest >= info.n_samples)
    throw ConfigError(fmt::format("fold: DM {} sweeps {} samples, the file holds {}", o.dm_pc_cm3,
                                  sweep, info.n_samples));
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

/// The file once more, channels each at their own phase.
search::FoldCube cube_of(FilterbankReader& reader, const FoldOptions& o,
                         const search::FoldConfig& config, double k_dm) {
  const FilterbankInfo& info = reader.info();
  const double interval_s = info.sample_interval_s;
  const search::Band band{info.channel_center_hz, info.channel_width_hz, interval_s, k_dm};
  std::vector<double> delay_s;
  for (std::int64_t c = 0; c < info.n_channels; ++c)
    delay_s.push_back(info.n_channels > 1 ? band.delay_samples(c, o.dm_pc_cm3) * interval_s : 0.0);
  const double duration_s = static_cast<double>(info.n_samples) * interval_s;
  search::ChannelFolder folder(
      config.n_bins, std::move(delay_s), interval_s,
      std::max(2 * interval_s, duration_s / static_cast<double>(config.n_sub_integrations)));
  constexpr std::int64_t kPiece = 4096;
  std::vector<float> data(info.n_channels * kPiece);
  for (std::int64_t first = 0; first < info.n_samples; first += kPiece) {
    const std::int64_t n = std::min(kPiece, info.n_samples - first);
    reader.read(first, n, data.data(), kPiece);
    const double t = static_cast<double>(first) * interval_s;
    const double turns = config.phase(t);
    const double end = config.phase(t + static_cast<double>(n) * interval_s);
    folder.add(data.data(), kPiece, n, t, turns, (end - turns) / static_cast<double>(n));
  }
  return folder.finish();
}

/// What the ephemeris says of this file. Fills DM and names in.
search::PhaseModel model_of(FoldOptions& o, const FilterbankInfo& info, FoldSummary& s) {
  const Pulsar pulsar = read_par(o.par);
  if (info.start_tai_ns == 0 || info.start_mjd_utc < 30'000)
    throw ConfigError(o.file + ": it does not say when it was recorded (MJD " +
                      fmt::format("{}", info.start_mjd_utc) +
                      "), so an ephemeris cannot be used; give --period");
  const auto site = known_telescope(info.telescope);
  if (!site && !info.barycentric)
    s.warnings.push_back("the place of \"" + info.telescope +
                         "\" is not known: the center of the Earth is taken (21 ms, 1.5e-6 of P)");
  if (!pulsar.ignored.empty())
    s.warnings.push_back(fmt::format("{}: not used: {}", o.par, fmt::join(pulsar.ignored, " ")));
  if (!(o.dm_pc_cm3 > 0)) o.dm_pc_cm3 = pulsar.dm_pc_cm3;
  if (!pulsar.name.empty()) s.source_name = pulsar.name;
  const double duration_s = static_cast<double>(info.n_samples) * info.sample_interval_s;
  const PulsarClock clock(pulsar, site ? &*site : nullptr, info.barycentric);
  auto model = predicted_phase(clock, info.start_tai_ns, duration_s);
  s.predicted_period_s = duration_s / (model.at(duration_s) - model.at(0));
  return model;
}

/// The range that was searched, and what to do where its edge is the best of it.
void say_range(const FoldOptions& o, double asked_s, FoldSummary& s) {
  const double half_hz = s.fold.half_range_hz;
  if (!(half_hz > 0)) return;
  s.shortest_s = 1 / (1 / asked_s + half_hz);
  s.longest_s = 1 / std::max(1 / asked_s - half_hz, 1 / s.duration_s);
  s.at_edge = s.fold.at_edge;
  if (!s.at_edge) return;
  s.warnings.push_back(fmt::format(
      "the best period lies at the edge of those searched, {:.9g} .. {:.9g} s (--drift {:g}), and "
      "the fold is better beyond: --drift {:g}, or a --period or ephemeris nearer to the truth",
      s.shortest_s, s.longest_s, o.drift_turns, 4 * o.drift_turns));
}

}  // namespace

FoldSummary fold_file(const FoldOptions& options) {
  FoldOptions o = options;
  if ((o.period_s > 0) == !o.par.empty())
    throw ConfigError("fold: give either --par FILE or --period SECONDS (topocentric)");
  check_numbers(o);
  require_picture(o.outputs.picture, "--png");
  require_ending(o.outputs.fits, "--fits", {".fits", ".fit", ".fts"});
  require_all_creatable({o.outputs.text, o.outputs.fits, o.outputs.picture}, o.outputs.overwrite);
  const auto reader = open_filterbank(o.file, o.input);
  const FilterbankInfo& info = reader->info();
  FoldSummary s;
  s.source_name = info.source_name;
  s.warnings = info.warnings;
  search::FoldConfig config;
  config.n_bins = o.n_bins;
  if (!o.par.empty()) {
    config.model = model_of(o, info, s);
  } else {
    config.f0_hz = 1 / o.period_s;
    config.f1_hz_per_s = -o.period_derivative / (o.period_s * o.period_s);
  }
  const std::vector<float> series = dedispersed(*reader, o);
  s.duration_s = static_cast<double>(series.size()) * info.sample_interval_s;
  s.fold = o.search ? search::fold_search(series, info.sample_interval_s, config,
                                          o.drift_turns / s.duration_s)
                    : search::fold(series, info.sample_interval_s, config);
  s.period_s = 1 / s.fold.config.spin_hz(s.duration_s);
  say_range(o, 1 / config.spin_hz(s.duration_s), s);
  s.reduced_chi2 = s.fold.reduced_chi2();
  s.n_samples = static_cast<std::int64_t>(series.size());
  s.start_mjd_utc = info.start_mjd_utc;
  FoldedPulsar head;
  head.source = s.source_name;
  head.telescope = info.telescope;
  head.file = std::filesystem::path(o.file).filename().string();
  head.ephemeris = std::filesystem::path(o.par).filename().string();
  head.start_mjd_utc = info.start_mjd_utc;
  head.period_s = s.period_s;
  head.shortest_s = s.shortest_s;
  head.longest_s = s.longest_s;
  head.at_edge = s.at_edge;
  head.dm_pc_cm3 = o.dm_pc_cm3;
  head.k_dm = search::dispersion_constant(o.k_dm);
  head.reduced_chi2 = s.reduced_chi2;
  head.command_line = o.command_line;
  head.center_hz = info.channel_center_hz;
  search::FoldCube cube;
  if (!o.outputs.fits.empty() || (!o.outputs.picture.empty() && info.n_channels > 1))
    cube = cube_of(*reader, o, s.fold.config, head.k_dm);
  s.products = write_fold_products(o.outputs, s.fold, &cube, std::move(head));
  return s;
}

}  // namespace ryle::pipeline
