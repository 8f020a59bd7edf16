// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_tracker.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "ryle/engine/search/baseline.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"

namespace ryle::pipeline {
namespace {

using search::kCodeMean;

search::ClusterConfig cluster_config(const SearchChainConfig& c) {
  search::ClusterConfig out;
  for (const double dm : c.dms) out.sweep_samples.push_back(dm * c.band.sweep_samples_per_dm());
  out.threshold = c.threshold;
  out.max_width = std::clamp<std::int64_t>(c.max_width, 1, search::kMaxWidth);
  // Groups of three times this are complete while their codes are kept (search_reach()).
  out.reach_samples = 2 * out.max_width + c.block_samples / 2;
  return out;
}

}  // namespace

void SearchCounts::add(const SearchCounts& o) {
  n_hits += o.n_hits;
  n_hits_dropped += o.n_hits_dropped;
  n_blocks_raised += o.n_blocks_raised;
  highest_threshold = std::max(highest_threshold, o.highest_threshold);
  normalize_s += o.normalize_s;
  dedisperse_s += o.dedisperse_s;
  detect_s += o.detect_s;
  cluster_s += o.cluster_s;
  normalize.add(o.normalize);
}

// Events close late: codes stay until the widest cluster that is still open can be refined.
SearchReach search_reach(const SearchChainConfig& c, std::int64_t max_delay, std::int64_t history) {
  const std::int64_t block = c.block_samples;
  SearchReach reach;
  reach.lateness = std::min<std::int64_t>(8 * c.max_width + 2 * block, 1 << 16);
  reach.keep = (max_delay + history + reach.lateness + block - 1) / block * block;
  return reach;
}

SearchTracker::SearchTracker(const SearchChainConfig& config)
    : config_(config), n_channels_(config.band.n_channels()), clusterer_(cluster_config(config)) {}

void SearchTracker::take(std::vector<search::Hit>& hits,
                         const std::vector<search::SeriesStatistics>& now, std::int64_t n_new,
                         const SearchExtent& extent, const SearchMetadata& metadata,
                         std::vector<SearchEvent>& events) {
  {
    const Stopwatch watch(counts_.cluster_s);
    keep_statistics(now, extent.searched);
    // Boxcars beyond the end hold absent samples only.
    const auto beyond = [&](const search::Hit& t) {
      return t.center() > static_cast<double>(extent.received);
    };
    hits.erase(std::remove_if(hits.begin(), hits.end(), beyond), hits.end());
    raise_threshold(hits, n_new);
    counts_.n_hits += static_cast<std::int64_t>(hits.size());
    clusterer_.add(hits);
    clusterer_.close_before(extent.searched, closed_);
  }
  take_closed(extent, metadata, events);
}

void SearchTracker::finish(const SearchExtent& extent, const SearchMetadata& metadata,
                           std::vector<SearchEvent>& events) {
  clusterer_.close_all(closed_);
  take_closed(extent, metadata, events);
}

// In a storm only the strongest hits of the block go on: those above the S/N that leaves no
// more than the limit. Which ones does not depend on their order.
void SearchTracker::raise_threshold(std::vector<search::Hit>& hits, std::int64_t n_new) {
  const double block_s = static_cast<double>(n_new) * config_.band.sample_interval_s;
  const auto maximum = static_cast<std::size_t>(std::max(256.0, config_.max_hits_per_s * block_s));
  if (hits.size() <= maximum) return;
  const auto before = hits.size();
  std::vector<float> snr;
  snr.reserve(before);
  for (const auto& t : hits) snr.push_back(t.snr);
  std::nth_element(snr.begin(), snr.begin() + static_cast<std::ptrdiff_t>(maximum), snr.end(),
                   std::greater<>());
  const float raised = snr[maximum];
  const auto weak = [&](const search::Hit& t) { return !(t.snr > raised); };
  hits.erase(std::remove_if(hits.begin(), hits.end(), weak), hits.end());
  counts_.n_hits_dropped += static_cast<std::int64_t>(before - hits.size());
  ++counts_.n_blocks_raised;
  counts_.highest_threshold = std::max(counts_.highest_threshold, static_cast<double>(raised));
}

void SearchTracker::take_closed(const SearchExtent& extent, const SearchMetadata& metadata,
                                std::vector<SearchEvent>& events) {
  const std::size_t first = events.size();
  for (const auto& cluster : closed_) {
    SearchEvent e = event_of(cluster, extent, metadata);
    if (static_cast<double>(e.cluster.best.snr) > 0) append(std::move(e), first, events);
  }
  closed_.clear();
}

// Two clusters that the matched filter finds to be one pulse: the better one stays.
void SearchTracker::append(SearchEvent e, std::size_t first,
                           std::vector<SearchEvent>& events) const {
  const double middle = config_.band.delay_samples(n_channels_ / 2, 1);
  const double sweep = config_.band.sweep_samples_per_dm();
  for (std::size_t k = first; k < events.size(); ++k) {
    SearchEvent& o = events[k];
    const double minimum = std::min(o.pulse.whole_fwhm_samples(), e.pulse.whole_fwhm_samples());
    const double maximum = std::max(o.pulse.whole_fwhm_samples(), e.pulse.whole_fwhm_samples());
    const double d_dm = e.pulse.dm_pc_cm3 - o.pulse.dm_pc_cm3;
    const double late = e.pulse.tick - o.pulse.tick + d_dm * middle;
    if (!o.refined || !e.refined || maximum > 2 * minimum + 2 ||
        std::abs(late) > 0.5 * maximum + 1 || std::abs(d_dm) * sweep > 2 * maximum + 1)
      continue;
    if (e.cluster.best.snr > o.cluster.best.snr) std::swap(o, e);
    o.cluster.n_hits += e.cluster.n_hits;
    return;
  }
  events.push_back(std::move(e));
}

// A block without data says nothing: clusters in it are measured by the one before.
void SearchTracker::keep_statistics(const std::vector<search::SeriesStatistics>& now,
                                    std::int64_t end) {
  BlockStatistics block{end, now};
  block.of.resize(config_.dms.size());
  if (!statistics_.empty())
    for (std::size_t k = 0; k < block.of.size(); ++k)
      if (!(block.of[k].sigma > 0)) block.of[k] = statistics_.back().of[k];
  statistics_.push_back(std::move(block));
  const std::int64_t lateness = search_reach(config_, 0, 0).lateness;
  while (statistics_.size() > 2 && statistics_[1].end < end - lateness) statistics_.pop_front();
}

search::SeriesStatistics SearchTracker::statistics_of(const search::Hit& t) const {
  const auto trial = static_cast<std::size_t>(t.trial);
  for (const auto& block : statistics_)
    if (t.start < block.end) return block.of[trial];
  return statistics_.empty() ? search::SeriesStatistics{} : statistics_.back().of[trial];
}

// Behind the last sample the mean of a trial is that of channels that are not there. Means of codes
// are off by up to a quarter of a code (rounding of few levels), which many samples of few channels
// turn into S/N: here each channel has its own.
double SearchTracker::excess_of_present(const std::vector<std::uint8_t>& codes, std::int64_t stride,
                                        std::int64_t first, std::int64_t received, double dm,
                                        const search::Hit& t) const {
  const std::int64_t n = std::min(stride, received - first);
  double excess = 0, variance = 0;
  for (std::int64_t c = 0; c < n_channels_; ++c) {
    const std::uint8_t* x = codes.data() + c * stride;
    double sum = 0, squares = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      sum += x[k];
      squares += static_cast<double>(x[k]) * x[k];
    }
    const double mean = sum / static_cast<double>(n);
    const std::int64_t delay = std::lrint(config_.band.delay_samples(c, dm));
    const std::int64_t from = t.start + delay - first;
    const std::int64_t to = std::min(from + t.width, n);
    for (std::int64_t k = from; k < to; ++k) excess += x[k] - mean;
    if (to > from)
      variance += static_cast<double>(to - from) * (squares / static_cast<double>(n) - mean * mean);
  }
  return variance > 0 ? excess / std::sqrt(variance) : 0;
}

// Mean and rms of the trial without the pulse, and its S/N by them: those of the block hold the
// pulse, which costs W / block of its S/N.
void SearchTracker::measure_again(const SearchExtent& extent, const SearchMetadata& metadata,
                                  SearchEvent& e, search::SeriesStatistics& s) const {
  search::Hit& best = e.cluster.best;
  const double dm = config_.dms[best.trial];
  const std::int64_t delay = std::lrint(config_.band.delay_samples(0, dm));
  const std::int64_t margin = 8 * best.width + 2048;
  const std::int64_t first = std::max(extent.codes_first, best.start - margin);
  const std::int64_t end = std::min(extent.codes_end - delay, best.start + best.width + margin);
  if (best.start < first || best.start + best.width > end) return;
  const std::int64_t stride = end + delay - first;
  std::vector<std::uint8_t> codes(n_channels_ * stride);
  metadata.copy_codes(first, first + stride, codes.data(), stride);
  const auto series = search::dedisperse_one(config_.band, dm, codes.data(), stride, end - first);
  const auto b =
      search::baseline_about(series.sums, series.weights, best.start - first, best.width);
  if (!(b.sigma > 0)) return;
  if (best.start + best.width + delay > extent.received) {
    const double there = excess_of_present(codes, stride, first, extent.received, dm, best);
    if (there < config_.threshold) {
      best.snr = 0;
      s = {};
      return;
    }
  }
  const double sigma = b.sigma / std::sqrt(b.weight);  // of full weight
  const BoxcarSeries boxcars(series, b, n_channels_);
  best.snr = static_cast<float>(boxcars.snr(best.start - first, best.width));
  // Nothing above a mean that is higher here than that of the block.
  if (!(static_cast<double>(best.snr) >= config_.threshold)) best.snr = 0;
  e.pulse.snr = static_cast<double>(best.snr);
  check_surroundings(boxcars, best.start - first, best.width, e.pulse.snr, e.checks);
  s = {b.mean, sigma};
}

// The bow tie of a pulse of width W holds S sqrt(W / d) in its best boxcar where the sweep is d
// more or less: half at d = 4 W. What is in few channels is as strong there.
void SearchTracker::look_at_other_dms(const SearchExtent& extent, const SearchMetadata& metadata,
                                      SearchEvent& e) const {
  const double sweep = std::max(config_.band.sweep_samples_per_dm(), 1e-9);
  const double width =
      std::max(static_cast<double>(e.cluster.best.width), e.pulse.whole_fwhm_samples());
  const auto reach = static_cast<std::int64_t>(std::ceil(4 * width)) + 1;
  for (const double sign : {1.0, -1.0}) {
    const double dm = e.pulse.dm_pc_cm3 + sign * static_cast<double>(reach) / sweep;
    if (dm < 0) continue;
    const std::int64_t delay = std::lrint(config_.band.delay_samples(0, dm));
    const auto tick = static_cast<std::int64_t>(std::lrint(e.pulse.tick));
    const std::int64_t margin = 2 * reach + 1024;
    const std::int64_t first = std::max(extent.codes_first, tick - margin);
    const std::int64_t end = std::min(extent.codes_end - delay, tick + margin);
    if (first > tick - reach || end < tick + reach) continue;
    const std::int64_t stride = end + delay - first;
    std::vector<std::uint8_t> codes(n_channels_ * stride);
    metadata.copy_codes(first, first + stride, codes.data(), stride);
    const auto series = search::dedisperse_one(config_.band, dm, codes.data(), stride, end - first);
    const auto b =
        search::baseline_about(series.sums, series.weights, tick - reach - first, 2 * reach);
    if (!(b.sigma > 0)) continue;
    const BoxcarSeries boxcars(series, b, n_channels_);
    for (double w = std::max(1.0, width); w <= 4 * width; w *= 1.4) {
      const auto samples = static_cast<std::int64_t>(w);
      const std::int64_t from = std::max<std::int64_t>(0, tick - reach - samples - first);
      const std::int64_t to = std::min(end - first - samples, tick + reach - first);
      for (std::int64_t t = from; t < to; t += std::max<std::int64_t>(1, samples / 4)) {
        const double snr = boxcars.snr(t, samples);
        if (snr > e.checks.off_dm_snr) e.checks.off_dm_snr = snr, e.checks.off_dm_pc_cm3 = dm;
      }
    }
  }
}

SearchEvent SearchTracker::event_of(const search::Cluster& cluster, const SearchExtent& extent,
                                    const SearchMetadata& metadata) const {
  SearchEvent e;
  e.cluster = cluster;
  const search::Hit& best = cluster.best;
  const double dm = config_.dms[best.trial];
  // Sample t covers [t - 1/2, t + 1/2): the middle of samples s .. s + W - 1.
  e.pulse.tick = best.center() - 0.5;
  e.pulse.dm_pc_cm3 = dm;
  e.pulse.fwhm_samples = best.width / 1.19;  // a boxcar fits a Gaussian best at 1.19 FWHM
  e.pulse.snr = static_cast<double>(best.snr);
  e.checks.threshold = config_.threshold;
  e.checks.has_baseline = false;
  e.checks.widest_samples = std::clamp<std::int64_t>(config_.max_width, 1, search::kMaxWidth);
  const auto trial = static_cast<std::size_t>(best.trial);
  if (trial > 0) e.checks.trial_gap_pc_cm3 = dm - config_.dms[trial - 1];
  if (trial + 1 < config_.dms.size())
    e.checks.trial_gap_pc_cm3 = std::max(e.checks.trial_gap_pc_cm3, config_.dms[trial + 1] - dm);
  for (const auto& range : *metadata.undecided)
    e.rfi_suspect |= best.start < range.end && best.start + best.width > range.first;
  e.channel_masked = *metadata.channel_masked;
  const auto n_masked =
      std::count(e.channel_masked.begin(), e.channel_masked.end(), std::uint8_t{1});
  e.masked_fraction = static_cast<double>(n_masked) / static_cast<double>(n_channels_);
  search::SeriesStatistics s = statistics_of(best);
  if (!(s.sigma > 0) || n_masked == n_channels_) return e;
  measure_again(extent, metadata, e, s);
  if (!(s.sigma > 0) || !(best.snr > 0)) return e;
  e.noise = s.sigma / std::sqrt(static_cast<double>(n_channels_));
  copy_window(extent, metadata, e);
  if (e.codes.empty()) return e;
  search::RefineInput in;
  in.codes = e.codes.data();
  in.stride = e.window_samples;
  in.first_tick = e.window_first;
  in.n_samples = e.window_samples;
  in.masked = e.channel_masked.data();
  in.sigma = e.noise;
  in.mean = kCodeMean + (s.mu - static_cast<double>(kCodeMean * n_channels_)) /
                            static_cast<double>(n_channels_ - n_masked);
  const search::RefinedPulse pulse = search::refine(config_.band, in, e.pulse);
  e.refined = pulse.snr > 0;
  if (e.refined) e.pulse = pulse;
  look_at_other_dms(extent, metadata, e);
  check_presence(config_.band, e.pulse.dm_pc_cm3, e.pulse.tick,
                 std::max(static_cast<double>(e.cluster.best.width), e.pulse.whole_fwhm_samples()),
                 e.codes, e.window_first, e.window_samples, e.channel_masked, e.checks);
  return e;
}

// Codes round the pulse, from before its first to behind its last channel.
void SearchTracker::copy_window(const SearchExtent& extent, const SearchMetadata& metadata,
                                SearchEvent& e) const {
  const std::int64_t margin = 128 + 10 * e.cluster.best.width;
  const double sweep = e.pulse.dm_pc_cm3 * config_.band.sweep_samples_per_dm();
  const std::int64_t first = e.cluster.best.start - margin;
  const auto end =
      first + 2 * margin + e.cluster.best.width + static_cast<std::int64_t>(1.1 * sweep);
  if (first + margin < extent.codes_first) return;  // gone
  e.window_first = first;
  e.window_samples = end - first;
  e.codes.assign(n_channels_ * e.window_samples, static_cast<std::uint8_t>(kCodeMean));
  const std::int64_t from = std::max(first, extent.codes_first);
  const std::int64_t to = std::min(end, extent.codes_end);
  if (to > from) metadata.copy_codes(from, to, e.codes.data() + (from - first), e.window_samples);
}

}  // namespace ryle::pipeline
