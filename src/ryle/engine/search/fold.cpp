// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/fold.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "ryle/core/error.hpp"

namespace ryle::search {
namespace {

void check(std::size_t n_samples, double interval_s, const FoldConfig& c) {
  if (!(c.f0_hz > 0) || !std::isfinite(c.f0_hz) || !std::isfinite(c.f1_hz_per_s))
    throw ConfigError("fold: the period must be above 0 s");
  if (c.n_bins < 2 || c.n_bins > 65536 || c.n_sub_integrations < 1)
    throw ConfigError("fold: " + std::to_string(c.n_bins) + " bins; 2 .. 65536");
  if (1 / c.f0_hz < 2 * interval_s)
    throw ConfigError("fold: a period of " + std::to_string(1 / c.f0_hz) +
                      " s is shorter than two samples of " + std::to_string(interval_s) + " s");
  if (static_cast<double>(n_samples) * interval_s * c.f0_hz < 1)
    throw ConfigError("fold: the series is shorter than one period");
}

/// Bins and counts with every sub-integration turned.
void turned(const Fold& f, double df0, double df1, std::vector<double>& sums,
            std::vector<double>& counts) {
  const std::int64_t n = f.config.n_bins;
  sums.assign(static_cast<std::size_t>(n), 0.0);
  counts.assign(static_cast<std::size_t>(n), 0.0);
  for (std::size_t s = 0; s < f.middle_s.size(); ++s) {
    const double t = f.middle_s[s];
    const auto shift = static_cast<std::int64_t>(
        std::llround((df0 * t + 0.5 * df1 * t * t) * static_cast<double>(n)));
    for (std::int64_t b = 0; b < n; ++b) {
      const auto to = static_cast<std::size_t>((((b + shift) % n) + n) % n);
      const std::size_t from = s * static_cast<std::size_t>(n) + static_cast<std::size_t>(b);
      sums[to] += f.sums[from];
      counts[to] += static_cast<double>(f.counts[from]);
    }
  }
}

}  // namespace

std::vector<double> Fold::profile(double df0_hz, double df1_hz_per_s) const {
  std::vector<double> bins, n;
  turned(*this, df0_hz, df1_hz_per_s, bins, n);
  for (std::size_t b = 0; b < bins.size(); ++b) bins[b] = n[b] > 0 ? bins[b] / n[b] : mean;
  return bins;
}

double Fold::reduced_chi2(double df0_hz, double df1_hz_per_s) const {
  std::vector<double> bins, n;
  turned(*this, df0_hz, df1_hz_per_s, bins, n);
  if (!(variance > 0)) return 0;
  double chi2 = 0;
  for (std::size_t b = 0; b < bins.size(); ++b) {
    if (!(n[b] > 0)) continue;
    const double excess = bins[b] / n[b] - mean;
    chi2 += excess * excess * n[b] / variance;
  }
  return chi2 / static_cast<double>(bins.size() - 1);
}

Fold fold(std::span<const float> series, double interval_s, const FoldConfig& config) {
  check(series.size(), interval_s, config);
  Fold f;
  f.config = config;
  const auto n_samples = static_cast<std::int64_t>(series.size());
  f.duration_s = static_cast<double>(n_samples) * interval_s;
  const std::int64_t subs = std::min(config.n_sub_integrations, n_samples);
  f.sums.assign(static_cast<std::size_t>(subs * config.n_bins), 0.0);
  f.counts.assign(f.sums.size(), 0);
  for (std::int64_t s = 0; s < subs; ++s)
    f.middle_s.push_back(f.duration_s * (static_cast<double>(s) + 0.5) / static_cast<double>(subs));
  double count = 0, sum = 0, squares = 0;
  const double shift =
      n_samples > 0 && std::isfinite(series[0]) ? static_cast<double>(series[0]) : 0;
  for (std::int64_t k = 0; k < n_samples; ++k) {
    const auto x = static_cast<double>(series[static_cast<std::size_t>(k)]);
    if (!std::isfinite(x)) continue;
    const double t = static_cast<double>(k) * interval_s;
    const double phase = t * (config.f0_hz + 0.5 * config.f1_hz_per_s * t);
    const auto bin =
        std::min(config.n_bins - 1, static_cast<std::int64_t>((phase - std::floor(phase)) *
                                                              static_cast<double>(config.n_bins)));
    const std::int64_t at = (k * subs / n_samples) * config.n_bins + bin;
    f.sums[static_cast<std::size_t>(at)] += x;
    ++f.counts[static_cast<std::size_t>(at)];
    ++count;
    sum += x - shift;
    squares += (x - shift) * (x - shift);
  }
  if (count > 0) {
    f.mean = shift + sum / count;
    f.variance = std::max(0.0, squares / count - (sum / count) * (sum / count));
  }
  return f;
}

Fold fold_search(std::span<const float> series, double interval_s, const FoldConfig& start,
                 double half_range_hz) {
  FoldConfig config = start;
  const Fold first = fold(series, interval_s, config);
  const double step = 0.25 / (static_cast<double>(config.n_bins) * first.duration_s);
  const auto n = std::min<std::int64_t>(200'000, static_cast<std::int64_t>(half_range_hz / step));
  double best = first.reduced_chi2(), at = 0;
  for (std::int64_t k = -n; k <= n; ++k) {
    const double df0 = static_cast<double>(k) * step;
    const double chi2 = first.reduced_chi2(df0, 0);
    if (chi2 > best) best = chi2, at = df0;
  }
#if RYLE_MUTANT == 957
  config.f0_hz -= at;
#else
  // A pulsar faster than F0 drifts to earlier phases by df0 t; the turn by +df0 t takes it back.
  config.f0_hz += at;
#endif
  // Whole bins and sub-integrations are coarse: the last two bins of drift sample by sample.
  Fold exact = fold(series, interval_s, config);
  for (int k = -16; k <= 16; ++k) {
    FoldConfig nearby = config;
    nearby.f0_hz += 0.5 * step * k;
    Fold candidate = fold(series, interval_s, nearby);
    if (candidate.reduced_chi2() > exact.reduced_chi2()) exact = std::move(candidate);
  }
  return exact;
}

}  // namespace ryle::search
