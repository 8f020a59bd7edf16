// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_chain.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>

#include "ryle/core/error.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"

namespace ryle::pipeline {
namespace {

using search::kCell;
using search::kCodeMean;

}  // namespace

struct SearchChain::Impl {
  SearchChainConfig config;
  std::int64_t n_channels, n_trials, history, block, max_delay;
  SearchReach reach;
  SearchTracker tracker;
  std::unique_ptr<search::DriftFilter> drift;  // or none
  search::Normalizer normalizer;
  SearchMetadata metadata;
  SlidingCodes codes, cells;  // samples, and the mask at 1/64 of the resolution
  Buffer<std::byte> tail;     // [trial][history] sums of the block before
  Buffer<float> tail_weights;
  Buffer<float> levelled;     // [channel][block], of the drift filter
  std::int64_t received = 0;  // samples, absent ones included
  std::int64_t taken = 0;     // whole blocks of them
  BlockArrivals arrivals;
  std::int64_t dedispersed = 0;  // outputs made, multiple of 64
  std::vector<search::Hit> hits;
  std::vector<search::SeriesStatistics> statistics;

  Impl(const SearchEngines& engines, const SearchChainConfig& c)
      : config(c),
        n_channels(c.band.n_channels()),
        n_trials(static_cast<std::int64_t>(c.dms.size())),
        history(engines.history),
        block(c.block_samples),
        max_delay(engines.max_delay()),
        reach(search_reach(c, max_delay, history)),
        tracker(c),
        normalizer(beam_normalization(c)),
        arrivals(block) {
    codes = SlidingCodes(n_channels, reach.keep + 2 * block, search::kReadAhead + kCell, kCodeMean);
    cells = SlidingCodes(n_channels, (reach.keep + 2 * block) / kCell, search::kReadAhead, 0);
    tail = Buffer<std::byte>(n_trials * history * engines.sum_bytes());
    tail_weights = Buffer<float>(n_trials * (history / kCell));
    if (c.baseline_samples > 0) {
      drift = std::make_unique<search::DriftFilter>(beam_drift(c), block);
      levelled = Buffer<float>(n_channels * block);
    }
    metadata.channel_masked = &normalizer.channel_flags();
    metadata.copy_codes = [this](std::int64_t from, std::int64_t to, std::uint8_t* out,
                                 std::int64_t stride) {
      for (std::int64_t ch = 0; ch < n_channels; ++ch)
        std::copy_n(codes.at(from) + ch * codes.stride(), to - from, out + ch * stride);
    };
  }

  SearchExtent extent() const {
    const std::int64_t kept = std::max(codes.first(), codes.end() - reach.keep - block);
    return {received, dedispersed - history, kept, codes.end()};
  }
  const SearchMetadata& metadata_now() {
    metadata.undecided = &normalizer.undecided();
    return metadata;
  }

  std::int64_t memory_bytes() const {
    return codes.bytes() + cells.bytes() + tail.bytes() + tail_weights.bytes() + levelled.bytes() +
           (drift ? drift->memory_bytes() : 0);
  }

  /// Adds n samples (absent ones when data is null) and fills the block up with absent ones. The
  /// drift filter holds some back: what comes out of it is of earlier samples.
  void add(Queue& queue, const float* data, std::int64_t stride, std::int64_t n) {
    const Stopwatch watch(tracker.counts().normalize_s);
    received += n;
    taken += block;
    if (data == nullptr) n = 0;
    if (!drift) return write(queue, data, stride, n, block);
    arrivals.add(n > 0);
    const std::int64_t n_out = drift->execute(queue, data, stride, n, levelled.data(), block);
    if (n_out == 0) return;
    const std::int64_t n_come = std::clamp<std::int64_t>(received - codes.end(), 0, n_out);
    const bool any = arrivals.any(codes.end(), codes.end() + n_out);
    write(queue, levelled.data(), block, any ? n_come : 0, n_out);
  }

  /// Codes of n samples, and absent ones up to `n_columns`.
  void write(Queue& queue, const float* data, std::int64_t stride, std::int64_t n,
             std::int64_t n_columns) {
    const std::int64_t keep_from = (codes.end() - reach.keep) / kCell * kCell;
    std::uint8_t* to = codes.extend(n_columns, keep_from);
    std::uint8_t* mask = cells.extend(n_columns / kCell, keep_from / kCell);
    for (std::int64_t c = 0; c < n_channels; ++c) {
      std::fill_n(to + c * codes.stride() + n, n_columns - n, static_cast<std::uint8_t>(kCodeMean));
      std::fill_n(mask + c * cells.stride(), n_columns / kCell, std::uint8_t{0});
    }
    if (n > 0)
      normalizer.execute(queue, data, stride, n, to, codes.stride(), mask, cells.stride(),
                         tracker.counts().normalize);
    else
      normalizer.skip(n_columns);
  }

  /// The tail of the block before and the new columns in the plane; returns their number.
  std::int64_t dedisperse(SearchEngines& e) {
    const Stopwatch watch(tracker.counts().dedisperse_s);
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
    const Stopwatch watch(tracker.counts().detect_s);
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
    hits.clear();
    statistics.clear();
    if (in.end_start <= in.first_start || in.stat_end <= in.stat_first) return;
    e.detector->execute(e.queue, in, hits);
    statistics = e.detector->statistics();
  }

  void advance(SearchEngines& e, std::vector<SearchEvent>& events) {
    const std::int64_t n_new = dedisperse(e);
    if (n_new == 0) return;
    detect(e, n_new);
    keep_tail(e, n_new);
    tracker.take(hits, statistics, n_new, extent(), metadata_now(), events);
  }
};

SearchChain::SearchChain(const SearchEngines& engines, const SearchChainConfig& config)
    : impl_(std::make_unique<Impl>(engines, config)) {}
SearchChain::~SearchChain() = default;

void SearchChain::feed(SearchEngines& engines, const float* data, std::int64_t stride,
                       std::int64_t n, std::vector<SearchEvent>& events) {
  RYLE_ASSERT(n <= impl_->block && impl_->received == impl_->taken);
  impl_->add(engines.queue, data, stride, n);
  impl_->advance(engines, events);
}

void SearchChain::finish(SearchEngines& engines, std::vector<SearchEvent>& events) {
  Impl& me = *impl_;
  while (me.dedispersed - me.history < me.received && me.received > 0) {
    me.add(engines.queue, nullptr, 0, 0);
    me.advance(engines, events);
  }
  me.tracker.finish(me.extent(), me.metadata_now(), events);
}

std::int64_t SearchChain::complete_before() const {
  const Impl& me = *impl_;
  const std::int64_t searched = me.dedispersed - me.history;
  return std::clamp(me.tracker.earliest_open(), searched - me.reach.lateness, searched);
}
const SearchCounts& SearchChain::counts() const { return impl_->tracker.counts(); }
std::int64_t SearchChain::n_flagged_channels() const {
  const auto& flags = impl_->normalizer.channel_flags();
  return std::count(flags.begin(), flags.end(), std::uint8_t{1});
}
std::int64_t SearchChain::memory_bytes() const { return impl_->memory_bytes(); }

}  // namespace ryle::pipeline
