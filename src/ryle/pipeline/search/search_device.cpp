// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_device.hpp"

#include <algorithm>
#include <atomic>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/device/on_device.hpp"
#include "ryle/engine/search/device_memory.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"
#ifdef RYLE_HAVE_CUDA
#include "ryle/engine/search/cuda/drift.hpp"
#include "ryle/engine/search/cuda/normalize.hpp"
#include "ryle/engine/search/cuda/rows.hpp"
#endif

namespace ryle::pipeline {
namespace {

/// Rows of codes may be read beyond their end: whole pieces of the tree, and kReadAhead.
constexpr std::int64_t kSlack = 4096;
/// The tree reads whole pieces of so many codes.
constexpr std::int64_t kPiece = 1024;

/// Codes of a row lie in a ring, and its first columns behind its end a second time: what a block
/// needs is one piece of memory wherever it begins, and nothing is ever moved.
struct CodeRing {
  std::int64_t columns, again;
  CodeRing(const SearchChainConfig& c, std::int64_t max_delay, std::int64_t history)
      : columns(search_reach(c, max_delay, history).keep + c.block_samples) {
    const std::int64_t needed = history + c.block_samples + search::kCell + max_delay;
    again = (needed + kPiece - 1) / kPiece * kPiece;
  }
  std::int64_t capacity() const { return columns + again; }
  std::int64_t at(std::int64_t tick) const { return tick % columns; }
};

}  // namespace

std::vector<std::pair<std::string, std::int64_t>> device_search_memory(const SearchChainConfig& c,
                                                                       std::int64_t n_beams,
                                                                       std::int64_t n_streams) {
  const std::int64_t history = (c.max_width + search::kCell - 1) / search::kCell * search::kCell;
  search::DedisperseConfig d;
  d.n_channels = c.band.n_channels();
  d.n_trials = static_cast<std::int64_t>(c.dms.size());
  d.delays = search::delay_table(c.band, c.dms);
  d.max_code = search::kMaxCode;
  d.max_outputs = (history + c.block_samples + search::kCell + kPiece - 1) / kPiece * kPiece;
  for (const double hz : c.band.center_hz) d.dispersion.push_back(1e18 / (hz * hz));
  const std::int64_t max_delay = *std::max_element(d.delays.begin(), d.delays.end());
  const std::int64_t columns = CodeRing(c, max_delay, history).capacity();
  const std::int64_t rows = checked_product({n_beams, d.n_channels}, "channels of beams");
  std::vector<std::pair<std::string, std::int64_t>> items{
      {"codes and masks of beams", rows * (columns + columns / search::kCell) + 2 * kSlack},
      {"masked channels", 4 * (rows + n_beams + d.n_trials * d.n_channels)},
      {"normalizer of beams",
       search::device_normalizer_bytes(beam_normalization(c), n_beams, c.block_samples)},
      {"dedispersed blocks", n_streams * search_engine_bytes(c, true)}};
  if (c.baseline_samples > 0)
    items.emplace_back("power held back for its levels",
                       search::device_drift_bytes(beam_drift(c), n_beams, c.block_samples));
  if (c.implementation.rfind("subband", 0) == 0) {
    d.smear_samples = c.smear_samples;
    items.emplace_back("rows of sub-bands", n_streams * search::device_subband_bytes(d));
  }
  if (c.implementation.rfind("fdmt", 0) == 0)
    items.emplace_back("trees", n_streams * search::device_tree_bytes(d));
  return items;
}

#ifdef RYLE_HAVE_CUDA

namespace {

/// And writes whole pieces of so many outputs fastest.
constexpr std::int64_t kOutputs = 512;

/// Time since which the mask of a beam has not changed, and what it leaves of the channels.
struct LevelMask {
  std::int64_t since = 0;
  std::int64_t n_masked = 0;
  bool level = false;
  std::vector<std::uint8_t> flags;
};

}  // namespace

struct DeviceSearch::Impl {
  SearchChainConfig config;
  search::NormalizeConfig normalization;
  std::int64_t n_beams, n_channels, n_trials, block;
  Queue queue;  // normalizer, codes
  Queue host;   // threads that feed the streams
  std::vector<std::unique_ptr<SearchEngines>> engines;
  std::int64_t history, max_delay;
  SearchReach reach;
  CodeRing ring;
  std::int64_t capacity, cell_capacity;
  std::unique_ptr<search::CudaDriftFilter> drift;  // or none
  std::unique_ptr<search::CudaNormalizer> normalizer;
  std::vector<std::unique_ptr<SearchTracker>> trackers;  // [beam]
  std::vector<LevelMask> masks;                          // [beam]
  std::vector<search::NormalizeReport> reports;          // [beam], up to the block before
  Buffer<std::uint8_t> codes, cells;                     // [beam][channel][capacity], cells at 1/64
  Buffer<float> staging;                                 // of feed_host()
  // Of the columns a block is searched in: channels with gaps, [beam][channel], and how many.
  Buffer<std::int32_t> gap_channels, gap_counts;
  Buffer<std::int32_t> cell_delays;  // [trial][channel]
  std::vector<std::int32_t> host_gap_counts;
  std::int64_t first = 0, end = 0;                        // ticks of the codes
  std::int64_t received = 0, taken = 0, dedispersed = 0;  // taken: whole blocks
  BlockArrivals arrivals{1};
  SearchCounts common;

  Impl(int device, const SearchChainConfig& c, std::int64_t beams, std::int64_t n_streams)
      : config(c),
        normalization(beam_normalization(c)),
        n_beams(beams),
        n_channels(c.band.n_channels()),
        n_trials(static_cast<std::int64_t>(c.dms.size())),
        block(c.block_samples),
        queue(Queue::cuda(device)),
        host(Queue::cpu(static_cast<int>(n_streams))),
        engines(make_engines(device, c, n_streams)),
        history(engines.front()->history),
        max_delay(engines.front()->max_delay()),
        reach(search_reach(c, max_delay, history)),
        ring(c, max_delay, history),
        capacity(ring.capacity()),
        cell_capacity(capacity / search::kCell) {
    const OnDevice scope(queue);
    codes = Buffer<std::uint8_t>(
        checked_product({n_beams, n_channels, capacity}, "codes of beams") + kSlack,
        MemorySpace::device);
    cells =
        Buffer<std::uint8_t>(n_beams * n_channels * cell_capacity + kSlack, MemorySpace::device);
    gap_channels = Buffer<std::int32_t>(n_beams * n_channels, MemorySpace::device);
    gap_counts = Buffer<std::int32_t>(n_beams, MemorySpace::device);
    host_gap_counts.resize(n_beams);
    std::vector<std::int32_t> delays = search::delay_table(c.band, c.dms);
    for (auto& delay : delays) delay /= static_cast<std::int32_t>(search::kCell);
    cell_delays =
        Buffer<std::int32_t>(static_cast<std::int64_t>(delays.size()), MemorySpace::device);
    copy_bytes(queue, cell_delays.data(), delays.data(), cell_delays.bytes());
    queue.synchronize();
    restart();
  }

  static std::vector<std::unique_ptr<SearchEngines>> make_engines(int device,
                                                                  const SearchChainConfig& c,
                                                                  std::int64_t n_streams) {
    std::vector<std::unique_ptr<SearchEngines>> engines;
    for (std::int64_t k = 0; k < n_streams; ++k)
      engines.push_back(std::make_unique<SearchEngines>(Queue::cuda(device), c));
    return engines;
  }

  void restart() {
    drift.reset();
    if (config.baseline_samples > 0)
      drift = std::make_unique<search::CudaDriftFilter>(queue, beam_drift(config), n_beams, block);
    normalizer.reset();
    normalizer = std::make_unique<search::CudaNormalizer>(queue, normalization, n_beams, block);
    trackers.clear();
    for (std::int64_t b = 0; b < n_beams; ++b)
      trackers.push_back(std::make_unique<SearchTracker>(config));
    masks.assign(n_beams, {});
    reports.assign(n_beams, {});
    first = end = received = taken = dedispersed = 0;
    arrivals = BlockArrivals(block);
    common = {};
  }

  search::DeviceRows code_rows(std::int64_t from_column, std::int64_t n) const {
    return {codes.data() + from_column, n_channels * capacity, capacity, n_beams, n_channels, n};
  }
  search::DeviceRows cell_rows(std::int64_t from_cell, std::int64_t n) const {
    return {cells.data() + from_cell,
            n_channels * cell_capacity,
            cell_capacity,
            n_beams,
            n_channels,
            n};
  }

  void copy_columns(std::int64_t from, std::int64_t to, std::int64_t n) {
    if (n <= 0) return;
    const auto copy = [&](const search::DeviceRows& rows, const std::uint8_t* first_row) {
      search::copy_rows(queue, rows, first_row, rows.to_outer, rows.to_inner);
    };
    copy(code_rows(to, n), codes.data() + from);
    copy(cell_rows(to / search::kCell, n / search::kCell), cells.data() + from / search::kCell);
  }
  /// Of n new columns, those that belong behind the end of the ring, too, and those that were
  /// written behind it, and belong to its beginning.
  void copy_again(std::int64_t at, std::int64_t n) {
    copy_columns(at, ring.columns + at, std::min(n, ring.again - at));
    copy_columns(ring.columns, 0, at + n - ring.columns);
  }

  /// The drift filter holds samples back: what comes out of it is of earlier ones.
  void add(const float* power, std::int64_t beam_stride, std::int64_t channel_stride,
           std::int64_t n) {
    const Stopwatch watch(common.normalize_s);
    received += n;
    taken += block;
    if (power == nullptr) n = 0;
    if (!drift) return write({power, beam_stride, channel_stride, n}, block);
    arrivals.add(n > 0);
    const std::int64_t n_out = drift->execute(queue, {power, beam_stride, channel_stride, n});
    if (n_out > 0) {
      search::DevicePower levelled = drift->output();
      const bool any = arrivals.any(end, end + n_out);
      levelled.n = any ? std::clamp<std::int64_t>(received - end, 0, n_out) : 0;
      write(levelled, n_out);
    }
    queue.synchronize();
  }

  /// Codes of the samples of `power`, and absent ones up to `n_columns`.
  void write(const search::DevicePower& power, std::int64_t n_columns) {
    const std::int64_t at = ring.at(end), n = power.n;
    search::fill_rows(queue, code_rows(at + n, n_columns - n),
                      static_cast<std::uint8_t>(search::kCodeMean));
    if (n < n_columns)
      search::fill_rows(queue, cell_rows(at / search::kCell, n_columns / search::kCell),
                        std::uint8_t{0});
    if (n > 0) {
      const search::DeviceCodes to{codes.data() + at,
                                   n_channels * capacity,
                                   capacity,
                                   cells.data() + at / search::kCell,
                                   n_channels * cell_capacity,
                                   cell_capacity};
      normalizer->execute(queue, power, to);
    } else {
      normalizer->skip(n_columns);
    }
    copy_again(at, n_columns);
    end += n_columns;
    first = std::max<std::int64_t>(0, end - ring.columns);
    queue.synchronize();
    for (std::int64_t b = 0; b < n_beams; ++b) note_mask(b, n, n_columns);
  }

  /// Is the mask of this block, of whole channels only, the one of the block before?
  void note_mask(std::int64_t beam, std::int64_t n, std::int64_t n_columns) {
    const auto b = static_cast<std::size_t>(beam);
    LevelMask& mask = masks[b];
    const search::NormalizeReport& now = normalizer->report(beam);
    search::NormalizeReport& before = reports[b];
    const auto& flags = normalizer->channel_flags(beam);
    const std::int64_t n_masked = std::count(flags.begin(), flags.end(), std::uint8_t{1});
    const std::int64_t whole =
        now.masked_user - before.masked_user + now.masked_channel - before.masked_channel;
    const bool level = n == n_columns && whole == n_masked * n &&
                       now.written - before.written == (n_channels - n_masked) * n;
    if (!level || !mask.level || flags != mask.flags) mask.since = end - n_columns;
    mask.level = level;
    mask.n_masked = n_masked;
    mask.flags = flags;
    before = now;
  }

  /// Weights of the columns [skip, n_columns) of a beam's plane; column 0 is tick `first_tick`.
  void weigh(std::size_t slot, std::int64_t beam, std::int64_t first_tick, std::int64_t skip,
             std::int64_t n_columns, search::DetectInput& in) {
    SearchEngines& e = *engines[slot];
    const std::int64_t n_cells = (n_columns - skip) / search::kCell;
    const std::int64_t weight_stride = e.plane_stride / search::kCell;
    const auto full = static_cast<float>(n_channels * search::kFullCell);
    const LevelMask& mask = masks[beam];
    const bool level = mask.level && mask.since <= first_tick + skip;
    if (level) {
      // All sums of cells are this one.
      const auto sum = static_cast<float>((n_channels - mask.n_masked) * search::kFullCell);
      in.level = sum / full;
      if (in.level > 0) return;
    }
    in.weights = e.weights.data();
    in.weight_stride = weight_stride;
    const std::uint8_t* from = cells.data() + beam * n_channels * cell_capacity +
                               ring.at(first_tick + skip) / search::kCell;
    // A few channels flagged for some time are what there is nearly always.
    const std::int64_t n_gaps = host_gap_counts[beam];
    if (n_gaps <= n_channels / 4) {
      search::weights_from_masked(e.queue, {from, 0, cell_capacity, 1, n_channels, n_cells},
                                  gap_channels.data() + beam * n_channels, n_gaps,
                                  cell_delays.data(), n_trials, full,
                                  e.weights.data() + skip / search::kCell, weight_stride);
      return;
    }
    e.mask_dedisperser->execute(e.queue, from, cell_capacity, n_cells, e.mask_sums.data(), n_cells);
    search::weights_from_sums(e.queue, e.mask_sums.data(), e.mask_format, n_trials, n_cells, full,
                              e.weights.data() + skip / search::kCell, weight_stride);
  }

  /// Boxcars that begin in the last `history` columns before `dedispersed` and the first ones
  /// behind it: all columns are summed here, which gives the integers of any other cut.
  void search_beam(std::size_t slot, std::int64_t beam, std::int64_t n_new,
                   std::vector<search::Hit>& hits, std::vector<SearchEvent>& events) {
    SearchEngines& e = *engines[slot];
    const OnDevice scope(e.queue);
    const std::int64_t first_tick = dedispersed - history, n_columns = history + n_new;
    const std::int64_t skip = std::max<std::int64_t>(0, -first_tick);
    const std::uint8_t* from =
        codes.data() + beam * n_channels * capacity + ring.at(first_tick + skip);
    const std::int64_t n_outputs =
        std::min((n_columns - skip + kOutputs - 1) / kOutputs * kOutputs, e.plane_stride - skip);
    e.dedisperser->execute(e.queue, from, capacity, n_outputs,
                           e.plane.data() + skip * e.sum_bytes(), e.plane_stride);
    search::DetectInput in;
    weigh(slot, beam, first_tick, skip, n_columns, in);
    in.sums = e.plane.data();
    in.stride = e.plane_stride;
    in.n_columns = n_columns;
    in.first_tick = first_tick;
    in.first_start = skip;
    in.end_start = n_new;
    in.stat_first = skip;
    in.stat_end = std::min(n_columns, received - first_tick);
    hits.clear();
    std::vector<search::SeriesStatistics> statistics;
    if (in.end_start > in.first_start && in.stat_end > in.stat_first) {
      e.detector->execute(e.queue, in, hits);
      statistics = e.detector->statistics();
    }
    e.queue.synchronize();
    trackers[beam]->take(hits, statistics, n_new, extent(dedispersed + n_new), metadata(e, beam),
                         events);
  }

  SearchExtent extent(std::int64_t outputs) const {
    return {received, outputs - history, first, end};
  }
  SearchMetadata metadata(SearchEngines& e, std::int64_t beam) {
    SearchMetadata f;
    f.channel_masked = &normalizer->channel_flags(beam);
    f.undecided = &normalizer->undecided(beam);
    f.copy_codes = [this, &e, beam](std::int64_t from, std::int64_t to, std::uint8_t* out,
                                    std::int64_t stride) {
      const std::uint8_t* rows = codes.data() + beam * n_channels * capacity;
      const std::int64_t n = to - from, before_end = std::min(n, capacity - ring.at(from));
      search::transfer_rows(e.queue, {out, 0, stride, 1, n_channels, before_end},
                            rows + ring.at(from), 0, capacity);
      search::transfer_rows(e.queue, {out + before_end, 0, stride, 1, n_channels, n - before_end},
                            rows + ring.at(from + before_end), 0, capacity);
      e.queue.synchronize();
    };
    return f;
  }

  /// Channels of each beam that are not whole in ticks [from, to).
  void find_gaps(std::int64_t from, std::int64_t to) {
    search::find_masked_channels(
        queue,
        {cells.data() + ring.at(from) / search::kCell, n_channels * cell_capacity, cell_capacity,
         n_beams, n_channels, (to - from + search::kCell - 1) / search::kCell},
        gap_channels.data(), gap_counts.data());
    copy_bytes(queue, host_gap_counts.data(), gap_counts.data(), gap_counts.bytes());
    queue.synchronize();
  }

  /// body(slot, beam) for all beams, each stream taking the next one when it is free.
  template <class Body>
  void for_each_beam(const Body& body) {
    std::atomic<std::int64_t> next{0};
    host.parallel_for(static_cast<std::int64_t>(engines.size()), [&](std::int64_t slot) {
      for (std::int64_t b = next++; b < n_beams; b = next++)
        body(static_cast<std::size_t>(slot), b);
    });
  }

  void advance(std::vector<SearchEvent>* found) {
    const std::int64_t target = (end - max_delay) / search::kCell * search::kCell;
    const std::int64_t n_new = target - dedispersed;
    if (n_new <= 0) return;
    const Stopwatch watch(common.dedisperse_s);
    find_gaps(std::max<std::int64_t>(0, dedispersed - history), target + max_delay);
    std::vector<std::vector<search::Hit>> hits(engines.size());
    for_each_beam([&](std::size_t slot, std::int64_t beam) {
      search_beam(slot, beam, n_new, hits[slot], found[beam]);
    });
    dedispersed = target;
  }
};

std::string no_device_search(const SearchChainConfig& config) {
  if (const std::string reason = cuda_unavailable_reason(); !reason.empty()) return reason;
  return search::CudaNormalizer::unsupported(beam_normalization(config));
}

DeviceSearch::DeviceSearch(int device, const SearchChainConfig& config, std::int64_t n_beams,
                           std::int64_t n_streams)
    : impl_(std::make_unique<Impl>(device, config, n_beams, n_streams)) {}
DeviceSearch::~DeviceSearch() = default;

void DeviceSearch::feed(const float* power, std::int64_t beam_stride, std::int64_t channel_stride,
                        std::int64_t n, std::vector<SearchEvent>* found) {
  take(power, beam_stride, channel_stride, n);
  search(found);
}

void DeviceSearch::take(const float* power, std::int64_t beam_stride, std::int64_t channel_stride,
                        std::int64_t n) {
  const OnDevice scope(impl_->queue);
  RYLE_ASSERT(n <= impl_->block && impl_->received == impl_->taken);
  impl_->add(power, beam_stride, channel_stride, n);
}

void DeviceSearch::search(std::vector<SearchEvent>* found) {
  const OnDevice scope(impl_->queue);
  impl_->advance(found);
}

void DeviceSearch::feed_host(const float* power, std::int64_t beam_stride,
                             std::int64_t channel_stride, std::int64_t n,
                             std::vector<SearchEvent>* found) {
  Impl& me = *impl_;
  const OnDevice scope(me.queue);
  if (me.staging.size() == 0)
    me.staging =
        Buffer<float>(checked_product({me.n_beams, me.n_channels, me.block}, "block of beams"),
                      MemorySpace::device);
  search::transfer_rows(me.queue,
                        {me.staging.data(), me.n_channels * me.block * 4, me.block * 4, me.n_beams,
                         me.n_channels, n * 4},
                        power, beam_stride * 4, channel_stride * 4);
  feed(me.staging.data(), me.n_channels * me.block, me.block, n, found);
}

void DeviceSearch::finish(std::vector<SearchEvent>* found) {
  Impl& me = *impl_;
  const OnDevice scope(me.queue);
  while (me.dedispersed - me.history < me.received && me.received > 0) {
    me.add(nullptr, 0, 0, 0);
    me.advance(found);
  }
  me.for_each_beam([&](std::size_t slot, std::int64_t beam) {
    SearchEngines& e = *me.engines[slot];
    me.trackers[beam]->finish(me.extent(me.dedispersed), me.metadata(e, beam), found[beam]);
  });
}

void DeviceSearch::restart(const search::UserMask& mask) {
  const OnDevice scope(impl_->queue);
  impl_->normalization.mask = mask;
  impl_->restart();
}

std::int64_t DeviceSearch::complete_before() const {
  const Impl& me = *impl_;
  const std::int64_t searched = me.dedispersed - me.history;
  std::int64_t minimum = searched;
  for (const auto& tracker : me.trackers)
    minimum = std::min(minimum, std::max(tracker->earliest_open(), searched - me.reach.lateness));
  return minimum;
}

SearchCounts DeviceSearch::counts() const {
  const Impl& me = *impl_;
  SearchCounts sum = me.common;
  for (std::int64_t b = 0; b < me.n_beams; ++b) {
    sum.add(me.trackers[b]->counts());
    sum.normalize.add(me.normalizer->report(b));
  }
  return sum;
}

std::int64_t DeviceSearch::n_flagged_channels() const {
  std::int64_t maximum = 0;
  for (const auto& mask : impl_->masks)
    maximum = std::max<std::int64_t>(
        maximum, std::count(mask.flags.begin(), mask.flags.end(), std::uint8_t{1}));
  return maximum;
}

std::int64_t DeviceSearch::memory_bytes() const {
  const Impl& me = *impl_;
  std::int64_t bytes = me.codes.bytes() + me.cells.bytes() + me.staging.bytes() +
                       me.normalizer->memory_bytes() + me.gap_channels.bytes() +
                       me.gap_counts.bytes() + me.cell_delays.bytes() +
                       (me.drift ? me.drift->memory_bytes() : 0);
  for (const auto& e : me.engines) bytes += e->memory_bytes();
  return bytes;
}
const SearchEngines& DeviceSearch::engines() const { return *impl_->engines.front(); }
std::int64_t DeviceSearch::n_bursts() const { return impl_->normalizer->n_bursts(); }

#else

struct DeviceSearch::Impl {};

std::string no_device_search(const SearchChainConfig&) { return cuda_unavailable_reason(); }
DeviceSearch::DeviceSearch(int, const SearchChainConfig&, std::int64_t, std::int64_t) {
  throw DeviceError("search on a device: " + cuda_unavailable_reason());
}
DeviceSearch::~DeviceSearch() = default;
void DeviceSearch::feed(const float*, std::int64_t, std::int64_t, std::int64_t,
                        std::vector<SearchEvent>*) {}
void DeviceSearch::take(const float*, std::int64_t, std::int64_t, std::int64_t) {}
void DeviceSearch::search(std::vector<SearchEvent>*) {}
void DeviceSearch::feed_host(const float*, std::int64_t, std::int64_t, std::int64_t,
                             std::vector<SearchEvent>*) {}
void DeviceSearch::finish(std::vector<SearchEvent>*) {}
void DeviceSearch::restart(const search::UserMask&) {}
std::int64_t DeviceSearch::complete_before() const { return 0; }
SearchCounts DeviceSearch::counts() const { return {}; }
std::int64_t DeviceSearch::n_flagged_channels() const { return 0; }
std::int64_t DeviceSearch::memory_bytes() const { return 0; }
const SearchEngines& DeviceSearch::engines() const {
  throw DeviceError("search on a device: " + cuda_unavailable_reason());
}
std::int64_t DeviceSearch::n_bursts() const { return 0; }

#endif

}  // namespace ryle::pipeline
