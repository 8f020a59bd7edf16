// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_live.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"
#include "ryle/pipeline/search/search_blocks.hpp"
#include "ryle/pipeline/search/search_device.hpp"
#include "ryle/pipeline/search/search_stream.hpp"
#include "ryle/runtime/stage_thread.hpp"

namespace ryle::pipeline {
namespace {

using SteadyClock = std::chrono::steady_clock;

}  // namespace

SearchChainConfig live_search_chain(const BeamStream& stream, const SearchSettings& settings) {
  if (stream.n_beams() < 1 || stream.frequency.n_channels < 2)
    throw ConfigError("live search: no beams, or one channel only");
  const auto band = search_band(stream.frequency, stream.sample_interval_s(), settings.k_dm);
  return search_chain(settings, {band, 0, true});  // filterbanks of a run descend on disk
}

namespace {

/// Coherent beams touch by their distances; sums of the same antennas without phases see all.
BeamGroupConfig stream_beams(const BeamStream& stream, const LiveSearchConfig& c) {
  BeamGroupConfig beams;
  beams.n_beams = stream.n_beams();
  beams.max_beams = c.max_beams;
  std::vector<SkyDirection> coherent;
  std::int64_t antennas = 0;
  for (const auto& beam : stream.beams) {
    beams.positions.push_back(beam.position);
    beams.incoherent.push_back(beam.incoherent ? 1 : 0);
    if (beam.incoherent) continue;
    coherent.push_back(beam.position);
    antennas = std::max(antennas, beam.n_antennas);
  }
  const double radius =
      c.adjacent_deg > 0 ? c.adjacent_deg * kDegree_rad : usual_adjacency(coherent);
  if (radius > 0) beams.neighbours = beam_neighbours(beams.positions, radius);
  // Signal grows with the antennas in one, with their root in the other.
  if (antennas > 0) beams.incoherent_ratio = 1 / std::sqrt(static_cast<double>(antennas));
  return beams;
}

}  // namespace

struct LiveSearch::Impl {
  LiveSearchConfig config;
  BeamStream stream;
  std::string warning;
  BeamSearchConfig search_config;
  BeamSearch search;
  SearchProducts products;
  BlockGatherer gatherer;
  bool wait = false;
  // Of the search thread.
  SearchDescription description;
  bool begun = false, running = false;
  std::int64_t origin_sample = 0;  // absolute, of the grid
  SampleClock clock;
  std::vector<BeamEvent> events;
  std::vector<const float*> power;  // of a block, [device]
  PowerBlock* held = nullptr;       // not given back yet
  mutable std::mutex mutex;
  LiveSearchProgress progress;
  std::atomic<bool> failed{false};
  std::string error;
  std::exception_ptr lost;              // a device
  std::unique_ptr<StageThread> thread;  // last: uses all of the above

  Impl(const BeamStream& s, const LiveSearchConfig& c)
      : config(c),
        stream(s),
        search_config(search_of(s, c)),
        search(search_config),
        products(product_options(c), search_config.chain.band, search_config.chain.dms),
        gatherer(s.n_beams(), s.frequency.n_channels, search_config.chain.block_samples, c.n_blocks,
                 search_config.devices) {
    describe();
    thread = std::make_unique<StageThread>(
        "search", [this](std::stop_token) { run(); }, [this] { gatherer.messages().close(); });
  }

  BeamSearchConfig search_of(const BeamStream& s, const LiveSearchConfig& c) {
    BeamSearchConfig out;
    out.chain = live_search_chain(s, c);
    out.chain.max_hits_per_s = c.max_hits_per_s;
    out.beams = stream_beams(s, c);
    out.n_workers = c.n_workers;
    if (c.devices.empty()) return out;
    const std::string why = no_device_search(out.chain);
    if (why.empty())
      out.devices = c.devices;
    else
      warning = "search: not on the device that makes the beams: " + why;
    return out;
  }

  static SearchProductOptions product_options(const LiveSearchConfig& c) {
    SearchProductOptions o = c.products;
    set_products(c, o);
    if (!(o.rewrite_s > 0)) o.rewrite_s = 10;
    return o;
  }

  void describe() {
    auto& d = description;
    d.file = config.products.name;
    d.telescope = stream.telescope;
    d.position = stream.beams.front().position;
    d.plan = plan_text(config, search_config.chain.dms);
    const double radius = usual_adjacency(search_config.beams.positions) / 3;
    if (radius > 0) d.position_error_rad = radius;  // half of the smallest distance
    if (config.position_error_deg > 0)
      d.position_error_rad = config.position_error_deg * kDegree_rad;
    d.command_line = config.command_line;
    describe_search(search_config.chain, search, d);
  }

  void run() {
    auto& messages = gatherer.messages();
    while (!messages.finished()) {
      const auto message = messages.pop_for(std::chrono::milliseconds(500));
      if (message) held = message->block;
      if (!failed) {
        try {
          if (message) work(*message);
          if (begun && config.voltage_records) products.add(config.voltage_records());
          products.tick(
              std::chrono::duration<double>(SteadyClock::now().time_since_epoch()).count());
        } catch (const std::exception& e) {  // the data go on; the summary says it
          if (dynamic_cast<const DeviceError*>(&e) != nullptr) lost = std::current_exception();
          error = e.what();
          failed = true;
        }
      }
      give_back();
    }
  }

  void give_back() {
    if (held != nullptr) gatherer.release(held);
    held = nullptr;
  }

  void work(const PowerMessage& message) {
    const auto begin = SteadyClock::now();
    const std::int64_t n = message.block == nullptr ? 0 : message.block->n_samples;
    const auto complete = message.block == nullptr ? begin : message.block->complete;
    if (message.block != nullptr) take_block(*message.block);
    if (message.ends && running) {
      search.finish(events);
      publish();
      running = false;
    }
    const std::lock_guard lock(mutex);
    progress.busy_s += seconds_since(begin);
    if (message.block == nullptr) return;
    ++progress.blocks;
    progress.data_s += static_cast<double>(n) * search_config.chain.band.sample_interval_s;
    progress.latency_s = std::max(progress.latency_s, seconds_since(complete));
  }

  void take_block(const PowerBlock& block) {
    std::int64_t missing = running ? block.first_sample - origin_sample - search.n_samples() : 0;
    const std::int64_t length = gatherer.block_samples();
    if (running && (missing < 0 || missing > BlockGatherer::kMaxGapBlocks * length)) {
      search.finish(events);
      publish();
      running = false;
      missing = 0;
    }
    if (!running) start(block);
    for (; missing > 0; missing -= length)  // blocks that were dropped
      search.feed(nullptr, 0, 0, length, events);
    if (block.parts.empty()) {
      search.feed(block.values.data(), gatherer.beam_stride(), gatherer.channel_stride(),
                  block.n_samples, events);
    } else {
      power.clear();
      for (const auto& part : block.parts) power.push_back(part.data());
      // The next block may be gathered there while the beams of this one are searched.
      search.feed_devices(power, gatherer.beam_stride(), gatherer.channel_stride(), block.n_samples,
                          events, [this] { give_back(); });
    }
    publish();
  }

  void start(const PowerBlock& block) {
    origin_sample = block.first_sample;
    clock = block.clock;
    running = true;
    if (begun) {
      search.begin_at(samples_since_start());
      const std::lock_guard lock(mutex);
      ++progress.restarts;
      return;
    }
    description.start_tai_ns = clock.tai_ns(origin_sample);
    description.start_mjd_utc = utc_mjd_s(description.start_tai_ns) / 86400;
    products.begin(description);
    begun = true;
  }

  /// Of the origin, by the clock.
  std::int64_t samples_since_start() const {
    const double s =
        static_cast<double>(clock.tai_ns(origin_sample) - description.start_tai_ns) * 1e-9;
    return std::llround(s / search_config.chain.band.sample_interval_s);
  }

  void publish() {
    const std::int64_t origin_tai_ns = clock.tai_ns(origin_sample);
    const std::size_t first = products.events().size();
    products.add(events, samples_since_start(), origin_tai_ns);
    for (std::size_t k = first; config.on_candidate && k < products.events().size(); ++k) {
      const SearchCandidate& c = products.events()[k];
      if (c.flags.empty()) config.on_candidate(c, stream.beams[c.beam].name);
    }
    const std::lock_guard lock(mutex);
    progress.events = static_cast<std::int64_t>(products.events().size());
    progress.candidates = products.n_candidates();
  }

  void summarise(RunSummary& summary) {
    const SearchCounts counts = search.counts();
    for (auto& name : search.implementations()) summary.implementations.push_back(std::move(name));
    if (!warning.empty()) summary.warnings.push_back(warning);
    if (auto losses = zero_dm_warning(search_config.chain); !losses.empty())
      summary.warnings.push_back("search: " + losses);
    for (const auto& p : products.products()) summary.products.push_back(p);
    for (const auto& w : products.warnings()) summary.warnings.push_back("search: " + w);
    if (counts.n_blocks_raised > 0) summary.warnings.push_back("search: " + storm_warning(counts));
    if (gatherer.dropped_blocks() > 0)
      summary.warnings.push_back(fmt::format(
          "search: {} blocks of {} samples were dropped because the search was too slow: fewer "
          "beams or trials, or more workers",
          gatherer.dropped_blocks(), gatherer.block_samples()));
    if (stream.time_source == TimeSource::arrival)
      summary.warnings.emplace_back("search: times rest on this host's clock");
    if (!error.empty()) summary.errors.push_back("search: " + error);
    for (const auto& e : products.errors()) summary.errors.push_back("search: " + e);
  }
};

LiveSearch::LiveSearch(const BeamStream& stream, const LiveSearchConfig& config)
    : impl_(std::make_unique<Impl>(stream, config)) {}
LiveSearch::~LiveSearch() = default;

void LiveSearch::take(const BeamChunk& chunk) { impl_->gatherer.take(chunk, impl_->wait); }

BeamDestination LiveSearch::place(const BeamChunk& next) {
  return impl_->gatherer.place(next, impl_->wait);
}

void LiveSearch::finish(RunSummary& summary) {
  Impl& me = *impl_;
  std::exception_ptr lost;
  std::string what;
  try {
    me.gatherer.finish();
  } catch (const DeviceError& e) {  // the last samples are gone, what was found is not
    lost = std::current_exception();
    what = e.what();
    me.gatherer.messages().close();
  }
  me.thread->join();
  if (!me.lost) me.lost = lost;
  if (lost && me.error.empty()) {
    me.error = what;
    me.failed = true;
  }
  try {  // what was found before a failure, too
    if (!me.begun && !me.failed) me.products.begin(me.description);
    me.description.n_samples = static_cast<std::int64_t>(
        std::llround(me.progress.data_s / me.search_config.chain.band.sample_interval_s));
    if (me.begun || !me.failed) me.products.finish(me.description);
  } catch (const std::exception& e) {
    if (me.error.empty()) me.error = e.what();
    me.failed = true;
  }
  me.summarise(summary);
  if (me.lost) std::rethrow_exception(me.lost);  // the run ends as one whose device was lost
}

bool LiveSearch::failed() const { return impl_->failed; }
bool LiveSearch::wants_host_values() const { return impl_->search_config.devices.empty(); }
std::int64_t LiveSearch::memory_bytes() const {
  return impl_->search.memory_bytes() + impl_->gatherer.memory_bytes();
}
LiveSearchProgress LiveSearch::progress() const {
  const std::lock_guard lock(impl_->mutex);
  LiveSearchProgress p = impl_->progress;
  p.dropped_blocks = impl_->gatherer.dropped_blocks();
  return p;
}
void LiveSearch::wait_when_full(bool wait) { impl_->wait = wait; }

}  // namespace ryle::pipeline
