// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/fold.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "ryle/core/error.hpp"
#include "ryle/core/interrupt.hpp"

namespace ryle::search {
namespace {

void check(std::size_t n_samples, double interval_s, const FoldConfig& c) {
  const double duration_s = static_cast<double>(n_samples) * interval_s;
  const double spin_hz = c.spin_hz(duration_s);
  if (!(spin_hz > 0) || !std::isfinite(spin_hz) || !std::isfinite(c.f1_hz_per_s))
    throw ConfigError("fold: the period must be above 0 s");
  if (c.n_bins < 2 || c.n_bins > 65536 || c.n_sub_integrations < 1)
    throw ConfigError("fold: " + std::to_string(c.n_bins) + " bins; 2 .. 65536");
  if (1 / spin_hz < 2 * interval_s)
    throw ConfigError("fold: a period of " + std::to_string(1 / spin_hz) +
                      " s is shorter than two samples of " + std::to_string(interval_s) + " s");
  if (duration_s * spin_hz < 1) throw ConfigError("fold: the series is shorter than one period");
}

/// Bins and counts with every sub-integration turned.
void turned(const Fold& f, double df0, double df1, std::vector<double>& sums,
            std::vector<double>& counts) {
  const std::int64_t n = f.config.n_bins;
  sums.assign(n, 0.0);
  counts.assign(n, 0.0);
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

double PhaseModel::at(double t_s) const {
  const double x = t_s / step_s + 1;
  const auto k = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(x)) - 1, 0,
                                          static_cast<std::int64_t>(turns.size()) - 4);
  const double* y = turns.data() + k;
  const double u = x - static_cast<double>(k);  // 1 .. 2 inside
  // Lagrange through four points.
  return -y[0] * (u - 1) * (u - 2) * (u - 3) / 6 + y[1] * u * (u - 2) * (u - 3) / 2 -
         y[2] * u * (u - 1) * (u - 3) / 2 + y[3] * u * (u - 1) * (u - 2) / 6;
}

double FoldConfig::phase(double t_s) const {
  const double turns = t_s * (f0_hz + 0.5 * f1_hz_per_s * t_s);
  return model.turns.empty() ? turns : turns + model.at(t_s);
}

double FoldConfig::spin_hz(double duration_s) const {
  if (model.turns.empty()) return f0_hz;
  return duration_s > 0 ? (phase(duration_s) - phase(0)) / duration_s : 0;
}

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
  f.sums.assign(subs * config.n_bins, 0.0);
  f.counts.assign(f.sums.size(), 0);
  for (std::int64_t s = 0; s < subs; ++s)
    f.middle_s.push_back(f.duration_s * (static_cast<double>(s) + 0.5) / static_cast<double>(subs));
  double count = 0, sum = 0, squares = 0;
  const double shift =
      n_samples > 0 && std::isfinite(series[0]) ? static_cast<double>(series[0]) : 0;
  for (std::int64_t k = 0; k < n_samples; ++k) {
    if (k % (1 << 20) == 0) require_not_interrupted("the series to be folded");
    const auto x = static_cast<double>(series[k]);
    if (!std::isfinite(x)) continue;
    const double t = static_cast<double>(k) * interval_s;
    const double phase = config.phase(t);
    const auto bin =
        std::min(config.n_bins - 1, static_cast<std::int64_t>((phase - std::floor(phase)) *
                                                              static_cast<double>(config.n_bins)));
    const std::int64_t at = (k * subs / n_samples) * config.n_bins + bin;
    f.sums[at] += x;
    ++f.counts[at];
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
    require_not_interrupted("the series to be folded");
    const double df0 = static_cast<double>(k) * step;
    const double chi2 = first.reduced_chi2(df0, 0);
    if (chi2 > best) best = chi2, at = df0;
  }
  bool at_edge = false;
  for (std::int64_t k = n + 1; k <= n + 8 && n > 0; ++k)
    for (const double sign : {1.0, -1.0})
      at_edge |= first.reduced_chi2(sign * static_cast<double>(k) * step, 0) > best;
  // A pulsar faster than F0 drifts to earlier phases by df0 t; the turn by +df0 t takes it back.
  config.f0_hz += at;
  // Whole bins and sub-integrations are coarse: the last two bins of drift sample by sample.
  Fold exact = fold(series, interval_s, config);
  for (int k = -16; k <= 16; ++k) {
    FoldConfig nearby = config;
    nearby.f0_hz += 0.5 * step * k;
    Fold candidate = fold(series, interval_s, nearby);
    if (candidate.reduced_chi2() > exact.reduced_chi2()) exact = std::move(candidate);
  }
  exact.half_range_hz = static_cast<double>(n) * step;
  exact.at_edge = at_edge;
  return exact;
}

Fold FoldCube::collapsed() const {
  Fold f;
  f.config.n_bins = n_bins;
  f.config.n_sub_integrations = n_subs();
  f.sums.assign(n_subs() * n_bins, 0.0);
  f.counts.assign(f.sums.size(), 0);
  f.variance = 1;
  f.duration_s = n_subs() > 0 ? end_s.back() : 0;
  for (std::int64_t s = 0; s < n_subs(); ++s) {
    const auto sub = static_cast<std::size_t>(s);
    f.middle_s.push_back(0.5 * (begin_s[sub] + end_s[sub]));
    for (std::int64_t c = 0; c < n_channels; ++c) {
      const auto channel = static_cast<std::size_t>(c);
      if (!(rms[channel] > 0)) continue;
      for (std::int64_t b = 0; b < n_bins; ++b) {
        const auto from = static_cast<std::size_t>((s * n_channels + c) * n_bins + b);
        const auto to = static_cast<std::size_t>(s * n_bins + b);
        const auto n = static_cast<double>(counts[from]);
        f.sums[to] += (static_cast<double>(sums[from]) - n * mean[channel]) / rms[channel];
        f.counts[to] += counts[from];
      }
    }
  }
  return f;
}

ChannelFolder::ChannelFolder(std::int64_t n_bins, std::vector<double> delay_s, double interval_s,
                             double sub_integration_s)
    : delay_s_(std::move(delay_s)),
      count_(delay_s_.size(), 0.0),
      sum_(delay_s_.size(), 0.0),
      squares_(delay_s_.size(), 0.0),
      shift_(delay_s_.size(), 0.0),
      interval_s_(interval_s),
      sub_integration_s_(sub_integration_s) {
  if (n_bins < 2 || n_bins > 65536 || delay_s_.empty() || !(interval_s > 0) ||
      !(sub_integration_s > interval_s))
    throw ConfigError("fold: " + std::to_string(n_bins) +
                      " bins (2 .. 65536), sub-integrations of " +
                      std::to_string(sub_integration_s) + " s");
  cube_.n_bins = n_bins;
  cube_.n_channels = static_cast<std::int64_t>(delay_s_.size());
}

void ChannelFolder::add(const float* data, std::int64_t stride, std::int64_t n, double start_s,
                        double turns, double turns_per_sample) {
  const std::int64_t n_bins = cube_.n_bins, n_channels = cube_.n_channels;
  while (n > 0) {
    if (cube_.begin_s.empty() || start_s >= cube_.begin_s.back() + sub_integration_s_) {
      cube_.begin_s.push_back(start_s);
      cube_.end_s.push_back(start_s);
      cube_.sums.resize(cube_.n_subs() * n_channels * n_bins, 0.0f);
      cube_.counts.resize(cube_.sums.size(), 0);
    }
    const double left_s = cube_.begin_s.back() + sub_integration_s_ - start_s;
    const auto piece =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(left_s / interval_s_)), 1, n);
    for (std::int64_t c = 0; c < n_channels; ++c) {
      const auto channel = static_cast<std::size_t>(c);
      const float* x = data + c * stride;
      const std::size_t row = static_cast<std::size_t>((cube_.n_subs() - 1) * n_channels + c) *
                              static_cast<std::size_t>(n_bins);
      const double first = turns - delay_s_[channel] / interval_s_ * turns_per_sample;
      for (std::int64_t t = 0; t < piece; ++t) {
        if (!std::isfinite(x[t])) continue;
        const double phase = first + static_cast<double>(t) * turns_per_sample;
        const auto bin = std::min(
            n_bins - 1,
            static_cast<std::int64_t>((phase - std::floor(phase)) * static_cast<double>(n_bins)));
        cube_.sums[row + static_cast<std::size_t>(bin)] += x[t];
        ++cube_.counts[row + static_cast<std::size_t>(bin)];
        const auto value = static_cast<double>(x[t]);
        if (count_[channel] == 0) shift_[channel] = value;  // no cancellation on a large mean
        ++count_[channel];
        sum_[channel] += value - shift_[channel];
        squares_[channel] += (value - shift_[channel]) * (value - shift_[channel]);
      }
    }
    start_s += static_cast<double>(piece) * interval_s_;
    turns += static_cast<double>(piece) * turns_per_sample;
    cube_.end_s.back() = start_s;
    data += piece;
    n -= piece;
  }
}

const FoldCube& ChannelFolder::finish() {
  cube_.mean.assign(delay_s_.size(), 0.0);
  cube_.rms.assign(delay_s_.size(), 0.0);
  for (std::size_t c = 0; c < delay_s_.size(); ++c) {
    if (!(count_[c] > 0)) continue;
    const double mean = sum_[c] / count_[c];
    cube_.mean[c] = shift_[c] + mean;
    cube_.rms[c] = std::sqrt(std::max(0.0, squares_[c] / count_[c] - mean * mean));
  }
  return cube_;
}

std::int64_t ChannelFolder::memory_bytes() const {
  return static_cast<std::int64_t>(cube_.sums.capacity() * (sizeof(float) + sizeof(std::uint32_t)));
}

}  // namespace ryle::search
