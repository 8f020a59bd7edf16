// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/normalize.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>

#include "ryle/core/error.hpp"
#include "ryle/engine/search/flag_cells.hpp"
#include "ryle/engine/search/normalize_flag_reasons.hpp"
#include "ryle/engine/search/robust.hpp"

namespace ryle::search {
namespace {

using detail::add_flag_reasons;
using detail::CellStatistics;
using detail::FlagReason;
using detail::kBandpassDegree;
using enum detail::FlagReason;

}  // namespace

void NormalizeReport::add(const NormalizeReport& o) {
  n_samples += o.n_samples;
  masked_user += o.masked_user;
  masked_time += o.masked_time;
  masked_absent += o.masked_absent;
  masked_channel += o.masked_channel;
  masked_cell += o.masked_cell;
  masked_kurtosis += o.masked_kurtosis;
  masked_spectra += o.masked_spectra;
  written += o.written;
  spectra.n_masked_runs += o.spectra.n_masked_runs;
  spectra.n_pulses_kept += o.spectra.n_pulses_kept;
  spectra.n_undecided += o.spectra.n_undecided;
  clipped_low += o.clipped_low;
  clipped_high += o.clipped_high;
}

std::vector<NormalizeReport::Part> NormalizeReport::masked_parts() const {
  std::vector<Part> parts{{"user", static_cast<double>(masked_user)},
                          {"time", static_cast<double>(masked_time)},
                          {"absent", static_cast<double>(masked_absent)},
                          {"channel", static_cast<double>(masked_channel)},
                          {"cell", static_cast<double>(masked_cell)},
                          {"kurtosis", static_cast<double>(masked_kurtosis)},
                          {"spectra", static_cast<double>(masked_spectra)}};
  double all = static_cast<double>(written);
  for (const auto& part : parts) all += part.fraction;
  for (auto& part : parts) part.fraction = all > 0 ? part.fraction / all : 0;
  return parts;
}

struct Normalizer::Impl {
  NormalizeConfig config;
  std::unique_ptr<SpectraFlagger> spectra;
  std::int64_t tick = 0;                            // of the first sample of this gulp
  std::vector<std::deque<CellStatistics>> history;  // [channel], the last cells of earlier gulps
  std::vector<std::vector<CellStatistics>> now;     // [channel][cell]
  std::vector<std::vector<CellStatistics>> usual;   // [channel][cell], running median
  std::vector<CellStatistics> typical;              // [channel], median over history and now
  std::vector<std::uint8_t> flags;
  std::vector<std::uint8_t> absent;  // [time]
  std::vector<std::uint8_t> causes;  // [channel][time of this gulp]
  std::vector<float> common;         // [time]: what all channels do at once, zero-DM filter
  std::vector<float> common_counts;  // [time]: channels that say so

  std::int64_t n_cells(std::int64_t n) const {
    return (n + config.statistics_samples - 1) / config.statistics_samples;
  }
  std::uint8_t* row(std::int64_t channel, std::int64_t n) { return causes.data() + channel * n; }
  const std::uint8_t* row(std::int64_t channel, std::int64_t n) const {
    return causes.data() + channel * n;
  }
  bool finds_spectra() const { return spectra != nullptr; }

  /// What is known before anything is measured: the user's masks, lost data.
  void begin_flag_reasons(std::int64_t channel, const float* x, std::int64_t n) {
    const auto c = static_cast<std::size_t>(channel);
    std::uint8_t* out = row(channel, n);
    const bool user = (!config.masked.empty() && config.masked[c] != 0) ||
                      (!config.mask.channels.empty() && config.mask.channels[c] != 0);
    for (std::int64_t t = 0; t < n; ++t)
      out[t] = absent[t] != 0 || !std::isfinite(x[t]) ? kAbsent : kNone;
    for (const MaskBlock& block : config.mask.blocks) {
      if (block.first >= tick + n) break;
      if (block.end <= tick || (!block.channels.empty() && block.channels[c] == 0)) continue;
      std::fill(out + std::max<std::int64_t>(0, block.first - tick),
                out + std::min(n, block.end - tick), std::uint8_t{kTime});
    }
    if (user) std::fill_n(out, n, std::uint8_t{kUser});
  }

  static CellStatistics measure(const float* x, const std::uint8_t* cause, std::int64_t first,
                                std::int64_t end) {
    double count = 0, sum = 0, squares = 0, shift = 0;
    for (std::int64_t t = first; t < end; ++t) {
      if (cause[t] != kNone) continue;
      if (count == 0) shift = static_cast<double>(x[t]);  // no cancellation on a large mean
      const double v = static_cast<double>(x[t]) - shift;
      ++count;
      sum += v;
      squares += v * v;
    }
    if (count < 32) return {};
    const double mean = sum / count;
    return {shift + mean, std::sqrt(std::max(0.0, squares / count - mean * mean)),
            static_cast<std::int64_t>(count)};
  }

  void measure_channel(std::int64_t channel, const float* x, std::int64_t n) {
    const auto c = static_cast<std::size_t>(channel);
    now[c].clear();
    for (std::int64_t k = 0; k < n_cells(n); ++k)
      now[c].push_back(measure(x, row(channel, n), k * config.statistics_samples,
                               std::min(n, (k + 1) * config.statistics_samples)));
    usual[c].clear();
    for (std::int64_t k = 0; k < n_cells(n); ++k) usual[c].push_back(median_at(channel, k));
    typical[c] = usual[c][std::min(n_cells(n) / 2, static_cast<std::int64_t>(usual[c].size()) - 1)];
  }

  /// Median over `median_cells` cells about one cell of this gulp (negative: of the gulps before).
  CellStatistics median_at(std::int64_t channel, std::int64_t cell) const {
    const auto& past = history[channel];
    const auto& cells = now[channel];
    const auto n_past = static_cast<std::int64_t>(past.size());
    std::vector<double> means, rmss;
    for (std::int64_t k = cell - config.median_cells / 2; k < cell + config.median_cells / 2; ++k) {
      if (k < -n_past || k >= static_cast<std::int64_t>(cells.size())) continue;
      const CellStatistics& s = k < 0 ? past[n_past + k] : cells[k];
      if (!(s.rms > 0)) continue;
      means.push_back(s.mean);
      rmss.push_back(s.rms);
    }
    return {detail::balanced_median_of(means), detail::balanced_median_of(rmss), 0};
  }

  void flag_channels(std::int64_t n_samples) {
    const auto n = static_cast<std::size_t>(config.n_channels);
    flags.assign(n, 0);
    std::vector<std::uint8_t> good(n, 0);
    std::vector<double> means(n, 0.0), rmss(n, 0.0);
    for (std::size_t c = 0; c < n; ++c) {
      if (!config.masked.empty() && config.masked[c] != 0) flags[c] = 1;
      if (!config.mask.channels.empty() && config.mask.channels[c] != 0) flags[c] = 1;
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
    const double noise_limit = detail::kNoiseThreshold * error_of_rms(good, n_samples);
    // Means are taken out anyway, and levelled data have hardly any scatter: an outlier must also
    // matter, by its own rms or by 5 % of it, before a channel is given up.
    std::vector<std::uint8_t> bright(n, 0), noisy(n, 0);
    for (std::size_t c = 0; c < n; ++c) {
      if (!good[c]) continue;
      const double offset = means[c] - mean_fit[c];
      if (std::abs(offset) > std::max(limit, rmss[c])) flags[c] = 1;
      bright[c] = offset > rmss[c];
      noisy[c] = rmss[c] > 1.05 * rms_fit[c] && 1 - rms_fit[c] / rmss[c] > noise_limit;
    }
    const auto max_lag = std::max<std::int64_t>(3, config.n_channels / 10);
    flag_outliers(means, good, bright, max_lag);
    flag_outliers(rmss, good, noisy, max_lag);
  }

  /// What the typical rms of a channel scatters by from noise alone, relative: chi-square power (of
  /// single spectra above all) has more of it than Gaussian numbers. From one cell to the next, so
  /// that the shape of the bandpass and unequal gains do not count.
  double error_of_rms(const std::vector<std::uint8_t>& good, std::int64_t n_samples) const {
    const std::int64_t n_now = n_cells(n_samples);
    const auto n_past = static_cast<std::int64_t>(history[0].size());
    if (n_now < 2 && n_past == 0)  // as bad_cells() assumes
      return 1 / std::sqrt(static_cast<double>(std::min(n_samples, config.statistics_samples)));
    std::vector<double> changes;
    for (std::size_t c = 0; c < good.size(); ++c) {
      const double one = now[c][0].rms;
      const double other = n_now < 2 ? history[c].back().rms : now[c][1].rms;
      if (good[c] && one > 0 && other > 0) changes.push_back(2 * (one - other) / (one + other));
    }
    const double scatter = detail::scatter_of(changes, detail::median_of(changes));
    return scatter * detail::median_error(n_now, n_past, config.median_cells);
  }

  /// Those of the suspected channels that are outliers by IQRM.
  void flag_outliers(const std::vector<double>& values, const std::vector<std::uint8_t>& good,
                     const std::vector<std::uint8_t>& suspected, std::int64_t max_lag) {
    if (std::find(suspected.begin(), suspected.end(), std::uint8_t{1}) == suspected.end()) return;
    const auto accused = iqrm(values, good, max_lag, config.iqrm_threshold);
    for (std::size_t c = 0; c < flags.size(); ++c)
      if (suspected[c] != 0 && accused[c] != 0) flags[c] = 1;
  }

  /// Cells of one channel among its neighbors. @return [cell][channel] causes
  std::vector<std::vector<std::uint8_t>> flag_cells(Queue& queue, std::int64_t n) const {
    const auto n_channels = static_cast<std::size_t>(config.n_channels);
    std::vector<std::vector<std::uint8_t>> out(n_cells(n),
                                               std::vector<std::uint8_t>(n_channels, kNone));
    if (!config.flag_channels) return out;
    std::vector<std::uint8_t> good(n_channels);
    for (std::size_t c = 0; c < n_channels; ++c) good[c] = flags[c] == 0;
    queue.parallel_for(n_cells(n), [&](std::int64_t k) {
      const auto cell = static_cast<std::size_t>(k);
      std::vector<CellStatistics> cells(n_channels), normal(n_channels);
      for (std::size_t c = 0; c < n_channels; ++c) {
        cells[c] = now[c][cell];
        normal[c] = usual[c][cell];
      }
      const auto bad =
          detail::bad_cells(cells, normal, good,
                            {std::min(config.statistics_samples, n - k * config.statistics_samples),
                             config.cell_threshold, config.iqrm_threshold});
      for (std::size_t c = 0; c < n_channels; ++c)
        if (bad[c] != 0) out[cell][c] = kBadCell;
      if (!(config.kurtosis_degrees > 0)) return;
      const auto odd = detail::bad_kurtosis(cells, good, config.kurtosis_degrees);
      for (std::size_t c = 0; c < n_channels; ++c)
        if (odd[c] != 0 && out[cell][c] == kNone) out[cell][c] = kKurtosis;
    });
    return out;
  }

  void add_flag_reason(std::int64_t channel, std::int64_t n,
                       const std::vector<std::vector<std::uint8_t>>& cells) {
    const auto c = static_cast<std::size_t>(channel);
    std::uint8_t* out = row(channel, n);
    for (std::int64_t k = 0; k < n_cells(n); ++k) {
      std::uint8_t cause = cells[k][c];
      if (flags[c] != 0 || !(usual[c][k].rms > 0)) cause = kChannel;
      if (cause == kNone) continue;
      const std::int64_t end = std::min(n, (k + 1) * config.statistics_samples);
      for (std::int64_t t = k * config.statistics_samples; t < end; ++t)
        if (out[t] == kNone) out[t] = cause;
    }
  }

  /// Sums over the channels of each group of (x - mean) / rms. @shape sums, counts [group][n]
  void sum_groups(Queue& queue, const float* data, std::int64_t stride, std::int64_t n,
                  std::int64_t n_groups, std::vector<float>& sums,
                  std::vector<float>& counts) const {
    sums.assign(n_groups * n, 0.0f);
    counts.assign(n_groups * n, 0.0f);
    queue.parallel_for(n_cells(n), [&](std::int64_t k) {
      const std::int64_t first = k * config.statistics_samples;
      const std::int64_t end = std::min(n, first + config.statistics_samples);
      for (std::int64_t c = 0; c < config.n_channels; ++c) {
        const CellStatistics& s = usual[c][k];
        if (!(s.rms > 0)) continue;
        const std::int64_t g = c * n_groups / config.n_channels;
        const auto mean = static_cast<float>(s.mean), scale = static_cast<float>(1 / s.rms);
        const float* x = data + c * stride;
        const std::uint8_t* cause = row(c, n);
        for (std::int64_t t = first; t < end; ++t) {
          sums[g * n + t] += cause[t] == kNone ? (x[t] - mean) * scale : 0.0f;
          counts[g * n + t] += cause[t] == kNone ? 1.0f : 0.0f;
        }
      }
    });
  }

  void flag_spectra(Queue& queue, const float* data, std::int64_t stride, std::int64_t n) {
    std::vector<float> sums, counts;
    std::vector<std::uint8_t> masked;
    sum_groups(queue, data, stride, n, spectra->n_groups(), sums, counts);
    spectra->execute(sums, counts, n, masked);
    if (std::find(masked.begin(), masked.end(), std::uint8_t{1}) == masked.end()) return;
    queue.parallel_for(config.n_channels, [&](std::int64_t c) {
      std::uint8_t* out = row(c, n);
      for (std::int64_t t = 0; t < n; ++t)
        if (masked[t] != 0 && out[t] == kNone) out[t] = kSpectrum;
    });
  }

  void find_common(Queue& queue, const float* data, std::int64_t stride, std::int64_t n) {
    sum_groups(queue, data, stride, n, 1, common, common_counts);
    for (std::size_t t = 0; t < common.size(); ++t)
      common[t] = common_counts[t] > 0 ? common[t] / common_counts[t] : 0.0f;
  }

  /// Response of one channel to the common signal. @eq (<u_c m> - 1/N) / (<m m> - 1/N) over the
  /// gulp: m holds the noise of u_c, one part in N. 1 where nothing is common.
  double response(std::int64_t channel, const float* x, std::int64_t n) const {
    if (config.zero_dm == ZeroDm::mean) return 1;
    double product = 0, square = 0, own = 0, used = 0;
    for (std::int64_t t = 0; t < n; ++t) {
      if (row(channel, n)[t] != kNone) continue;
      const CellStatistics& s = usual[channel][t / config.statistics_samples];
      const auto m = static_cast<double>(common[t]);
      product += (static_cast<double>(x[t]) - s.mean) / s.rms * m;
      square += m * m;
      own += 1 / static_cast<double>(common_counts[t]);
      ++used;
    }
    // Three standard errors of the variance of m from noise alone.
    if (!(square - own > 3 * own * std::sqrt(2 / std::max(used, 1.0)))) return 1;
    return (product - own) / (square - own);
  }

  void write_channel(std::int64_t channel, const float* x, std::int64_t n, std::uint8_t* codes,
                     std::uint8_t* cells, NormalizeReport& report) const {
    constexpr float kRound = 12582912.0f;  // 1.5 x 2^23: adding it rounds to nearest even
    const auto c = static_cast<std::size_t>(channel);
    const std::uint8_t* cause = row(channel, n);
    const bool filter = config.zero_dm != ZeroDm::off;
    const auto gain = filter ? static_cast<float>(kCodeSigma * response(channel, x, n)) : 0.0f;
    for (std::int64_t k = 0; k < n_cells(n); ++k) {
      const std::int64_t first = k * config.statistics_samples;
      const std::int64_t end = std::min(n, first + config.statistics_samples);
      const CellStatistics& s = usual[c][k];
      const auto mean = static_cast<float>(s.mean);
      const float scale = s.rms > 0 ? static_cast<float>(kCodeSigma / s.rms) : 0.0f;
      int low = 0, high = 0;
      for (std::int64_t t = first; t < end; ++t) {
        float q = static_cast<float>(kCodeMean) + scale * (x[t] - mean);
        if (filter) q -= gain * common[t];
        if (cause[t] != kNone) q = static_cast<float>(kCodeMean);
        low += q < -0.5f ? 1 : 0;
        high += q >= static_cast<float>(kMaxCode) + 0.5f ? 1 : 0;
        q = std::min(std::max(q, 0.0f), static_cast<float>(kMaxCode));
        codes[t] = static_cast<std::uint8_t>(static_cast<int>((q + kRound) - kRound));
      }
      report.clipped_low += low;
      report.clipped_high += high;
    }
    count(cause, n, cells, report);
  }

  /// Samples by cause, and the cells of the mask.
  static void count(const std::uint8_t* cause, std::int64_t n, std::uint8_t* cells,
                    NormalizeReport& report) {
    std::array<std::int64_t, kNumFlagReasons> counts{};
    for (std::int64_t k = 0; k < (n + kCell - 1) / kCell; ++k) {
      std::int64_t good = 0;
      for (std::int64_t t = k * kCell; t < std::min(n, (k + 1) * kCell); ++t) {
        good += cause[t] == kNone ? 1 : 0;
        ++counts[cause[t]];
      }
      cells[k] = static_cast<std::uint8_t>((good * kFullCell + kCell / 2) / kCell);
    }
    add_flag_reasons(counts, report);
  }
};

Normalizer::Normalizer(const NormalizeConfig& config) : impl_(std::make_unique<Impl>()) {
  if (config.n_channels < 1) throw ConfigError("normalisation: no channels");
  const auto check = [&](std::size_t size) {
    if (size != 0 && static_cast<std::int64_t>(size) != config.n_channels)
      throw ConfigError("normalisation: a mask of " + std::to_string(size) + " channels for " +
                        std::to_string(config.n_channels));
  };
  check(config.masked.size());
  check(config.mask.channels.size());
  check(config.spectra.band.center_hz.size());
  for (const auto& block : config.mask.blocks) check(block.channels.size());
  if (config.statistics_samples < kCell || config.statistics_samples % kCell != 0)
    throw ConfigError("normalisation: statistics over " +
                      std::to_string(config.statistics_samples) + " samples; a multiple of 64");
  impl_->config = config;
  impl_->config.mask.sort();
  const auto n = static_cast<std::size_t>(config.n_channels);
  impl_->history.resize(n);
  impl_->now.resize(n);
  impl_->usual.resize(n);
  impl_->typical.resize(n);
  impl_->flags.resize(n);
  if (config.flag_spectra && config.flag_channels && config.n_channels >= 4 &&
      config.spectra.threshold > 0 && !config.spectra.band.center_hz.empty())
    impl_->spectra = std::make_unique<SpectraFlagger>(config.spectra);
}
Normalizer::~Normalizer() = default;

const std::vector<std::uint8_t>& Normalizer::channel_flags() const { return impl_->flags; }

const std::vector<TickRange>& Normalizer::undecided() const {
  static const std::vector<TickRange> none;
  return impl_->finds_spectra() ? impl_->spectra->undecided() : none;
}

void Normalizer::skip(std::int64_t n) {
  impl_->tick += n;
  if (impl_->finds_spectra()) impl_->spectra->skip(n);
}

void Normalizer::execute(Queue& queue, const float* data, std::int64_t stride, std::int64_t n,
                         std::uint8_t* codes, std::int64_t code_stride, std::uint8_t* cells,
                         std::int64_t cell_stride, NormalizeReport& report) {
  Impl& me = *impl_;
  const std::int64_t n_channels = me.config.n_channels;
  me.causes.resize(n_channels * n);
  detail::find_absent(queue, data, stride, n_channels, n, me.absent);
  queue.parallel_for(n_channels, [&](std::int64_t c) {
    me.begin_flag_reasons(c, data + c * stride, n);
    me.measure_channel(c, data + c * stride, n);
  });
  me.flag_channels(n);
  const auto bad_cells = me.flag_cells(queue, n);
  queue.parallel_for(n_channels, [&](std::int64_t c) { me.add_flag_reason(c, n, bad_cells); });
  if (me.finds_spectra()) me.flag_spectra(queue, data, stride, n);
  if (me.config.zero_dm != ZeroDm::off) me.find_common(queue, data, stride, n);
  std::vector<NormalizeReport> reports(n_channels);
  queue.parallel_for(n_channels, [&](std::int64_t c) {
    me.write_channel(c, data + c * stride, n, codes + c * code_stride, cells + c * cell_stride,
                     reports[c]);
  });
  for (std::int64_t c = 0; c < n_channels; ++c) {
    report.add(reports[c]);
    auto& past = me.history[c];
    for (const auto& cell : me.now[c]) past.push_back(cell);
    while (static_cast<std::int64_t>(past.size()) > me.config.median_cells / 2) past.pop_front();
  }
  report.n_samples += n;
  if (me.finds_spectra()) report.spectra = me.spectra->report();
  me.tick += n;
}

}  // namespace ryle::search
