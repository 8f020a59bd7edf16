// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/normalize.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>

#include "ryle/core/error.hpp"
#include "ryle/engine/search/robust.hpp"

namespace ryle::search {
namespace {

constexpr int kBandpassDegree = 11;  // Magro 2014: 12 coefficients

struct CellStatistics {
  double mean = 0;
  double rms = 0;  // 0: nothing there
};

}  // namespace

void NormalizeReport::add(const NormalizeReport& o) {
  n_samples += o.n_samples;
  masked_user += o.masked_user;
  masked_absent += o.masked_absent;
  masked_channel += o.masked_channel;
  masked_cell += o.masked_cell;
  clipped_low += o.clipped_low;
  clipped_high += o.clipped_high;
}

struct Normalizer::Content {
  NormalizeConfig config;
  std::vector<std::deque<CellStatistics>> history;  // [channel], the last cells of earlier gulps
  std::vector<std::vector<CellStatistics>> now;     // [channel][cell]
  std::vector<CellStatistics> typical;              // [channel], median over history and now
  std::vector<std::uint8_t> flags;
  std::vector<std::uint8_t> absent;  // [time]

  std::int64_t n_cells(std::int64_t n) const {
    return (n + config.statistics_samples - 1) / config.statistics_samples;
  }

  void find_absent(const float* data, std::int64_t stride, std::int64_t n) {
    absent.assign(static_cast<std::size_t>(n), config.n_channels > 1 ? 1 : 0);
    for (std::int64_t c = 1; c < config.n_channels; ++c)
      for (std::int64_t t = 0; t < n; ++t)
        absent[static_cast<std::size_t>(t)] &= data[c * stride + t] == data[t] ? 1 : 0;
  }

  CellStatistics measure(const float* x, std::int64_t first, std::int64_t end) const {
    double count = 0, sum = 0, squares = 0;
    double shift = 0;
    bool shifted = false;
    for (std::int64_t t = first; t < end; ++t) {
      if (absent[static_cast<std::size_t>(t)] != 0 || !std::isfinite(x[t])) continue;
      if (!shifted)
        shift = static_cast<double>(x[t]), shifted = true;  // no cancellation on a large mean
      const double v = static_cast<double>(x[t]) - shift;
      ++count;
      sum += v;
      squares += v * v;
    }
    if (count < 32) return {};
    const double mean = sum / count;
    return {shift + mean, std::sqrt(std::max(0.0, squares / count - mean * mean))};
  }

  /// Median over `median_cells` cells about one cell of this gulp (negative: of the gulps before).
  CellStatistics median_at(std::int64_t channel, std::int64_t cell) const {
    const auto& past = history[static_cast<std::size_t>(channel)];
    const auto& cells = now[static_cast<std::size_t>(channel)];
    const auto n_past = static_cast<std::int64_t>(past.size());
    std::vector<double> means, rmss;
    for (std::int64_t k = cell - config.median_cells / 2; k < cell + config.median_cells / 2; ++k) {
      if (k < -n_past || k >= static_cast<std::int64_t>(cells.size())) continue;
      const CellStatistics& s =
          k < 0 ? past[static_cast<std::size_t>(n_past + k)] : cells[static_cast<std::size_t>(k)];
      if (!(s.rms > 0)) continue;
      means.push_back(s.mean);
      rmss.push_back(s.rms);
    }
    return {detail::median_of(means), detail::median_of(rmss)};
  }

  void flag_channels() {
    const auto n = static_cast<std::size_t>(config.n_channels);
    flags.assign(n, 0);
    std::vector<std::uint8_t> good(n, 0);
    std::vector<double> means(n, 0.0), rmss(n, 0.0);
    for (std::size_t c = 0; c < n; ++c) {
      if (!config.masked.empty() && config.masked[c] != 0) flags[c] = 1;
      if (!(typical[c].rms > 0)) flags[c] = 1;
      good[c] = flags[c] == 0;
      means[c] = typical[c].mean;
      rmss[c] = typical[c].rms;
    }
    if (!config.flag_channels || n < 32) return;
    const int degree = std::min<int>(kBandpassDegree, static_cast<int>(n / 16));
    const auto mean_fit = legendre_fit(means, good, degree);
    const auto rms_fit = legendre_fit(rmss, good, degree);
    std::vector<double> residual;
    for (std::size_t c = 0; c < n; ++c)
      if (good[c]) residual.push_back(means[c] - mean_fit[c]);
    const double limit =
        config.bandpass_threshold * detail::scatter_of(residual, detail::median_of(residual));
    const auto max_lag = std::max<std::int64_t>(3, config.n_channels / 10);
    const auto by_rms = iqrm(rmss, good, max_lag, config.iqrm_threshold);
    const auto by_mean = iqrm(means, good, max_lag, config.iqrm_threshold);
    for (std::size_t c = 0; c < n; ++c) {
      if (!good[c]) continue;
      // Means are taken out anyway, and levelled data have hardly any scatter: an outlier must also
      // matter, by its own rms or by 5 % of it, before a channel is given up.
      const double offset = means[c] - mean_fit[c];
      const bool bandpass = std::abs(offset) > std::max(limit, rmss[c]);
      const bool bright = by_mean[c] != 0 && offset > rmss[c];
      const bool noisy = by_rms[c] != 0 && rmss[c] > 1.05 * rms_fit[c];
      if (bandpass || bright || noisy) flags[c] = 1;
    }
  }

  /// One cell of one channel is out when its mean or rms differs from the running median by more
  /// than `cell_threshold` standard errors and by a part that matters (mean: 0.3 rms; rms: 30 %).
  bool cell_is_bad(const CellStatistics& cell, const CellStatistics& usual, std::int64_t n) const {
    if (!config.flag_channels || !(cell.rms > 0)) return false;
    const double error = usual.rms / std::sqrt(static_cast<double>(n));
    const double limit = config.cell_threshold;
    return std::abs(cell.mean - usual.mean) > std::max(limit * error, 0.3 * usual.rms) ||
           std::abs(cell.rms - usual.rms) > std::max(limit * error, 0.3 * usual.rms);
  }

  void write_channel(std::int64_t channel, const float* x, std::int64_t n, std::uint8_t* codes,
                     std::uint8_t* cells, NormalizeReport& report) const {
    const auto c = static_cast<std::size_t>(channel);
    std::vector<std::int64_t> good(static_cast<std::size_t>((n + kCell - 1) / kCell), 0);
    const bool user = !config.masked.empty() && config.masked[c] != 0;
    for (std::int64_t k = 0; k < n_cells(n); ++k) {
      const std::int64_t first = k * config.statistics_samples;
      const std::int64_t end = std::min(n, first + config.statistics_samples);
      const CellStatistics usual = median_at(channel, k);
      const bool bad_cell = cell_is_bad(now[c][static_cast<std::size_t>(k)], usual, end - first);
      const auto mean = static_cast<float>(usual.mean);
      const float scale = usual.rms > 0 ? static_cast<float>(kCodeSigma / usual.rms) : 0.0f;
      for (std::int64_t t = first; t < end; ++t) {
        codes[t] = kCodeMean;
        if (user)
          ++report.masked_user;
        else if (absent[static_cast<std::size_t>(t)] != 0 || !std::isfinite(x[t]))
          ++report.masked_absent;
        else if (flags[c] != 0 || !(scale > 0))
          ++report.masked_channel;
        else if (bad_cell)
          ++report.masked_cell;
        else {
          const float q = std::nearbyintf(static_cast<float>(kCodeMean) + scale * (x[t] - mean));
          report.clipped_low += q < 0 ? 1 : 0;
          report.clipped_high += q > static_cast<float>(kMaxCode) ? 1 : 0;
          codes[t] = static_cast<std::uint8_t>(std::clamp(q, 0.0f, static_cast<float>(kMaxCode)));
          ++good[static_cast<std::size_t>(t / kCell)];
        }
      }
    }
    for (std::size_t k = 0; k < good.size(); ++k)
      cells[k] = static_cast<std::uint8_t>((good[k] * kFullCell + kCell / 2) / kCell);
  }
};

Normalizer::Normalizer(const NormalizeConfig& config) : content_(std::make_unique<Content>()) {
  if (config.n_channels < 1) throw ConfigError("normalisation: no channels");
  if (!config.masked.empty() &&
      static_cast<std::int64_t>(config.masked.size()) != config.n_channels)
    throw ConfigError("normalisation: a mask of " + std::to_string(config.masked.size()) +
                      " channels for " + std::to_string(config.n_channels));
  if (config.statistics_samples < kCell || config.statistics_samples % kCell != 0)
    throw ConfigError("normalisation: statistics over " +
                      std::to_string(config.statistics_samples) + " samples; a multiple of 64");
  content_->config = config;
  const auto n = static_cast<std::size_t>(config.n_channels);
  content_->history.resize(n);
  content_->now.resize(n);
  content_->typical.resize(n);
  content_->flags.resize(n);
}
Normalizer::~Normalizer() = default;

const std::vector<std::uint8_t>& Normalizer::channel_flags() const { return content_->flags; }

void Normalizer::execute(Queue& queue, const float* data, std::int64_t stride, std::int64_t n,
                         std::uint8_t* codes, std::int64_t code_stride, std::uint8_t* cells,
                         std::int64_t cell_stride, NormalizeReport& report) {
  Content& me = *content_;
  const std::int64_t n_channels = me.config.n_channels;
  me.find_absent(data, stride, n);
  queue.parallel_for(n_channels, [&](std::int64_t c) {
    auto& list = me.now[static_cast<std::size_t>(c)];
    list.clear();
    for (std::int64_t k = 0; k < me.n_cells(n); ++k)
      list.push_back(me.measure(data + c * stride, k * me.config.statistics_samples,
                                std::min(n, (k + 1) * me.config.statistics_samples)));
    me.typical[static_cast<std::size_t>(c)] = me.median_at(c, me.n_cells(n) / 2);
  });
  me.flag_channels();
  std::vector<NormalizeReport> reports(static_cast<std::size_t>(n_channels));
  queue.parallel_for(n_channels, [&](std::int64_t c) {
    me.write_channel(c, data + c * stride, n, codes + c * code_stride, cells + c * cell_stride,
                     reports[static_cast<std::size_t>(c)]);
  });
  for (std::int64_t c = 0; c < n_channels; ++c) {
    report.add(reports[static_cast<std::size_t>(c)]);
    auto& past = me.history[static_cast<std::size_t>(c)];
    for (const auto& cell : me.now[static_cast<std::size_t>(c)]) past.push_back(cell);
    while (static_cast<std::int64_t>(past.size()) > me.config.median_cells / 2) past.pop_front();
  }
  report.n_samples += n;
}

}  // namespace ryle::search
