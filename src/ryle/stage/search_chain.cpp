// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/stage/search_chain.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>

#include "ryle/core/error.hpp"
#include "ryle/stage/stopwatch.hpp"

namespace ryle::stage {
namespace {

using search::kCell;
using search::kCodeMean;

std::int64_t rounded_up(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }

}  // namespace

void SearchCounts::add(const SearchCounts& o) {
  n_tokens += o.n_tokens;
  n_tokens_dropped += o.n_tokens_dropped;
  n_blocks_raised += o.n_blocks_raised;
  highest_threshold = std::max(highest_threshold, o.highest_threshold);
  normalize_s += o.normalize_s;
  dedisperse_s += o.dedisperse_s;
  detect_s += o.detect_s;
  cluster_s += o.cluster_s;
  normalize.add(o.normalize);
}

struct SearchChain::Content {
  SearchChainConfig config;
  std::int64_t n_channels, n_trials, history, block, max_delay, lateness = 0, keep = 0;
  search::Clusterer clusterer;
  search::Normalizer normalizer;
  SlidingCodes codes, cells;  // samples, and the mask at 1/64 of the resolution
  Buffer<std::byte> tail;     // [trial][history] sums of the block before
  Buffer<float> tail_weights;
  std::vector<search::SeriesStatistics> statistics;  // [trial], of the last block
  std::int64_t received = 0;                         // samples, absent ones included
  std::int64_t dedispersed = 0;                      // outputs made, multiple of 64
  SearchCounts counts;
  std::vector<search::Token> tokens;
  std::vector<search::Cluster> closed;

  Content(const SearchEngines& engines, const SearchChainConfig& c)
      : config(c),
        n_channels(c.band.n_channels()),
        n_trials(static_cast<std::int64_t>(c.dms.size())),
        history(engines.history),
        block(c.block_samples),
        max_delay(engines.max_delay()),
        clusterer(cluster_config(c)),
        normalizer(normalize_config(c)) {
    if (c.normalize.zero_dm != search::ZeroDm::off)
      search::check_zero_dm(c.band, c.dms.front(), c.max_width);
    // Events close late: codes stay until the widest cluster that is still open can be refined.
    lateness = std::min<std::int64_t>(8 * config.max_width + 2 * block, 1 << 16);
    keep = rounded_up(max_delay + history + lateness, block);
    codes = SlidingCodes(n_channels, keep + 2 * block, search::kReadAhead + kCell, kCodeMean);
    cells = SlidingCodes(n_channels, (keep + 2 * block) / kCell, search::kReadAhead, 0);
    tail = Buffer<std::byte>(n_trials * history * engines.sum_bytes());
    tail_weights = Buffer<float>(n_trials * (history / kCell));
  }

  static search::NormalizeConfig normalize_config(const SearchChainConfig& c) {
    search::NormalizeConfig out = c.normalize;
    out.spectra.band = c.band;
    return out;
  }

  static search::ClusterConfig cluster_config(const SearchChainConfig& c) {
    search::ClusterConfig out;
    for (const double dm : c.dms) out.sweep_samples.push_back(dm * c.band.sweep_samples_per_dm());
    return out;
  }

  std::int64_t memory_bytes() const {
    return codes.bytes() + cells.bytes() + tail.bytes() + tail_weights.bytes();
  }

  /// Adds n samples (absent ones when data is null) and fills the block up with absent ones.
  void add(Queue& queue, const float* data, std::int64_t stride, std::int64_t n) {
    const Stopwatch watch(counts.normalize_s);
    const std::int64_t keep_from = (codes.end() - keep) / kCell * kCell;
    std::uint8_t* to = codes.extend(block, keep_from);
    std::uint8_t* mask = cells.extend(block / kCell, keep_from / kCell);
    const std::int64_t first_absent = data == nullptr ? 0 : n;
    for (std::int64_t c = 0; c < n_channels; ++c) {
      std::fill_n(to + c * codes.stride() + first_absent, block - first_absent,
                  static_cast<std::uint8_t>(kCodeMean));
      std::fill_n(mask + c * cells.stride(), block / kCell, std::uint8_t{0});
    }
    if (data != nullptr && n > 0)
      normalizer.execute(queue, data, stride, n, to, codes.stride(), mask, cells.stride(),
                         counts.normalize);
    else
      normalizer.skip(block);
    received += n;
  }

  /// The tail of the block before and the new columns in the plane; returns their number.
  std::int64_t dedisperse(SearchEngines& e) {
    const Stopwatch watch(counts.dedisperse_s);
    const std::int64_t target = (codes.end() - max_delay) / kCell * kCell;
    const std::int64_t n = target - dedispersed;
    if (n <= 0) return 0;
    const std::int64_t size = e.sum_bytes(), n_cells = n / kCell, past_cells = history / kCell;
    const std::int64_t weight_stride = e.plane_stride / kCell;
    e.dedisperser->execute(e.queue, codes.at(dedispersed), codes.stride(), n,
                           e.plane.data() + history * size, e.plane_stride);
    e.mask_dedisperser->execute(e.queue, cells.at(dedispersed / kCell), cells.stride(), n_cells,
                                e.mask_sums.data(), n_cells);
    const auto full = static_cast<float>(n_channels * search::kFullCell);
    for (std::int64_t trial = 0; trial < n_trials; ++trial) {
      std::memcpy(e.plane.data() + trial * e.plane_stride * size,
                  tail.data() + trial * history * size, static_cast<std::size_t>(history * size));
      float* w = e.weights.data() + trial * weight_stride;
      std::copy_n(tail_weights.data() + trial * past_cells, past_cells, w);
      for (std::int64_t k = 0; k < n_cells; ++k)
        w[past_cells + k] = mask_sum(e, trial * n_cells + k) / full;
    }
    dedispersed = target;
    return n;
  }

  static float mask_sum(const SearchEngines& e, std::int64_t at) {
    const std::byte* sums = e.mask_sums.data();
    return e.mask_format == search::SumFormat::u16
               ? static_cast<float>(reinterpret_cast<const std::uint16_t*>(sums)[at])
               : static_cast<float>(reinterpret_cast<const std::uint32_t*>(sums)[at]);
  }

  /// Keeps the last columns for the boxcars that reach into the next block.
  void keep_tail(const SearchEngines& e, std::int64_t n_new) {
    const std::int64_t size = e.sum_bytes(), past_cells = history / kCell;
    for (std::int64_t trial = 0; trial < n_trials; ++trial) {
      std::memcpy(tail.data() + trial * history * size,
                  e.plane.data() + (trial * e.plane_stride + n_new) * size,
                  static_cast<std::size_t>(history * size));
      std::copy_n(e.weights.data() + trial * (e.plane_stride / kCell) + n_new / kCell, past_cells,
                  tail_weights.data() + trial * past_cells);
    }
  }

  void detect(SearchEngines& e, std::int64_t n_new) {
    const Stopwatch watch(counts.detect_s);
    search::DetectInput in;
    in.sums = e.plane.data();
    in.stride = e.plane_stride;
    in.n_columns = history + n_new;
    in.first_tick = dedispersed - in.n_columns;
    in.first_start = std::max<std::int64_t>(0, -in.first_tick);
    in.end_start = n_new;
    in.stat_first = in.first_start;
    in.stat_end = std::min(in.n_columns, received - in.first_tick);
    in.weights = e.weights.data();
    in.weight_stride = e.plane_stride / kCell;
    tokens.clear();
    if (in.end_start <= in.first_start || in.stat_end <= in.stat_first) return;
    e.detector->execute(e.queue, in, tokens);
    keep_statistics(e.detector->statistics());
    // Boxcars beyond the end hold absent samples only.
    const auto beyond = [&](const search::Token& t) {
      return t.center() > static_cast<double>(received);
    };
    tokens.erase(std::remove_if(tokens.begin(), tokens.end(), beyond), tokens.end());
    raise_threshold(n_new);
  }

  /// A block without data says nothing: clusters that close in it are measured by the one before.
  void keep_statistics(const std::vector<search::SeriesStatistics>& now) {
    statistics.resize(now.size());
    for (std::size_t k = 0; k < now.size(); ++k)
      if (now[k].sigma > 0) statistics[k] = now[k];
  }

  /// In a storm only the strongest tokens of the block go on: those above the S/N that leaves no
  /// more than the limit. Which ones does not depend on their order.
  void raise_threshold(std::int64_t n_new) {
    const double block_s = static_cast<double>(n_new) * config.band.sample_interval_s;
    const auto most = static_cast<std::size_t>(std::max(256.0, config.max_tokens_per_s * block_s));
    if (tokens.size() <= most) return;
    const auto before = tokens.size();
    std::vector<float> snr;
    snr.reserve(before);
    for (const auto& t : tokens) snr.push_back(t.snr);
    std::nth_element(snr.begin(), snr.begin() + static_cast<std::ptrdiff_t>(most), snr.end(),
                     std::greater<>());
    const float raised = snr[most];
    const auto weak = [&](const search::Token& t) { return !(t.snr > raised); };
    tokens.erase(std::remove_if(tokens.begin(), tokens.end(), weak), tokens.end());
    counts.n_tokens_dropped += static_cast<std::int64_t>(before - tokens.size());
    ++counts.n_blocks_raised;
    counts.highest_threshold = std::max(counts.highest_threshold, static_cast<double>(raised));
  }

  void advance(SearchEngines& e, std::vector<SearchEvent>& events) {
    const std::int64_t n_new = dedisperse(e);
    if (n_new == 0) return;
    detect(e, n_new);
    keep_tail(e, n_new);
    {
      const Stopwatch watch(counts.cluster_s);
      counts.n_tokens += static_cast<std::int64_t>(tokens.size());
      clusterer.add(tokens);
      clusterer.close_before(dedispersed - history, closed);
    }
    take_closed(events);
  }

  void take_closed(std::vector<SearchEvent>& events) {
    for (const auto& cluster : closed) events.push_back(event_of(cluster));
    closed.clear();
  }

  SearchEvent event_of(const search::Cluster& cluster) const {
    SearchEvent e;
    e.cluster = cluster;
    const search::Token& best = cluster.best;
    const double dm = config.dms[static_cast<std::size_t>(best.trial)];
    // Sample t covers [t - 1/2, t + 1/2): the middle of samples s .. s + W - 1.
    e.pulse.tick = best.center() - 0.5;
    e.pulse.dm_pc_cm3 = dm;
    e.pulse.fwhm_samples = best.width / 1.19;  // a boxcar fits a Gaussian best at 1.19 FWHM
    e.pulse.snr = static_cast<double>(best.snr);
    for (const auto& range : normalizer.undecided())
      e.rfi_suspect |= best.start < range.end && best.start + best.width > range.first;
    e.channel_masked = normalizer.channel_flags();
    const auto n_masked =
        std::count(e.channel_masked.begin(), e.channel_masked.end(), std::uint8_t{1});
    e.masked_fraction = static_cast<double>(n_masked) / static_cast<double>(n_channels);
    const search::SeriesStatistics s = statistics[static_cast<std::size_t>(best.trial)];
    if (!(s.sigma > 0) || n_masked == n_channels) return e;
    e.noise = s.sigma / std::sqrt(static_cast<double>(n_channels));
    copy_window(e);
    if (e.codes.empty()) return e;
    search::RefineInput in;
    in.codes = e.codes.data();
    in.stride = e.window_samples;
    in.first_tick = e.window_first;
    in.n_samples = e.window_samples;
    in.masked = e.channel_masked.data();
    in.sigma = e.noise;
    in.mean = kCodeMean + (s.mu - static_cast<double>(kCodeMean * n_channels)) /
                              static_cast<double>(n_channels - n_masked);
    const search::RefinedPulse pulse = search::refine(config.band, in, e.pulse);
    e.refined = pulse.snr > 0;
    if (e.refined) e.pulse = pulse;
    return e;
  }

  /// Codes round the pulse, from before its first to behind its last channel.
  void copy_window(SearchEvent& e) const {
    const std::int64_t margin = 128 + 10 * e.cluster.best.width;
    const double sweep = e.pulse.dm_pc_cm3 * config.band.sweep_samples_per_dm();
    const std::int64_t first = e.cluster.best.start - margin;
    const auto end =
        first + 2 * margin + e.cluster.best.width + static_cast<std::int64_t>(1.1 * sweep);
    if (first + margin < codes.first()) return;  // gone
    e.window_first = first;
    e.window_samples = end - first;
    e.codes.assign(static_cast<std::size_t>(n_channels * e.window_samples),
                   static_cast<std::uint8_t>(kCodeMean));
    const std::int64_t from = std::max(first, codes.first()), to = std::min(end, codes.end());
    for (std::int64_t c = 0; c < n_channels; ++c)
      std::copy_n(codes.at(from) + c * codes.stride(), to - from,
                  e.codes.data() + c * e.window_samples + (from - first));
  }
};

SearchChain::SearchChain(const SearchEngines& engines, const SearchChainConfig& config)
    : content_(std::make_unique<Content>(engines, config)) {}
SearchChain::~SearchChain() = default;

void SearchChain::feed(SearchEngines& engines, const float* data, std::int64_t stride,
                       std::int64_t n, std::vector<SearchEvent>& events) {
  RYLE_ASSERT(n <= content_->block && content_->received == content_->codes.end());
  content_->add(engines.queue, data, stride, n);
  content_->advance(engines, events);
}

void SearchChain::finish(SearchEngines& engines, std::vector<SearchEvent>& events) {
  Content& me = *content_;
  while (me.dedispersed - me.history < me.received && me.received > 0) {
    me.add(engines.queue, nullptr, 0, 0);
    me.advance(engines, events);
  }
  me.clusterer.close_all(me.closed);
  me.take_closed(events);
}

std::int64_t SearchChain::settled_before() const {
  const Content& me = *content_;
  const std::int64_t searched = me.dedispersed - me.history;
  return std::clamp(me.clusterer.earliest_open(), searched - me.lateness, searched);
}
const SearchCounts& SearchChain::counts() const { return content_->counts; }
std::int64_t SearchChain::n_flagged_channels() const {
  const auto& flags = content_->normalizer.channel_flags();
  return std::count(flags.begin(), flags.end(), std::uint8_t{1});
}
std::int64_t SearchChain::memory_bytes() const { return content_->memory_bytes(); }

}  // namespace ryle::stage
