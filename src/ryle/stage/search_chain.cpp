// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/stage/search_chain.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"

namespace ryle::stage {
namespace {

using search::kCell;
using search::kCodeMean;
using search::kMaxCode;

std::int64_t rounded_up(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }

class Stopwatch {
 public:
  explicit Stopwatch(double& total_s)
      : total_s_(total_s), begin_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() {
    total_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& total_s_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace

struct SearchChain::Content {
  Queue queue;
  SearchChainConfig config;
  std::int64_t n_channels, n_trials, history, block, keep = 0;
  std::unique_ptr<search::Dedisperser> dedisperser, mask_dedisperser;
  std::unique_ptr<search::Detector> detector;
  search::Clusterer clusterer;
  search::Normalizer normalizer;
  search::NormalizeReport report;
  SlidingCodes codes, cells;  // samples, and the mask at 1/64 of the resolution
  search::SumFormat format, mask_format;
  std::int64_t plane_stride = 0, plane_columns = 0;
  Buffer<std::byte> plane;       // [trial][history + new] sums
  Buffer<std::byte> mask_sums;   // [trial][new / 64]
  Buffer<float> weights;         // [trial][plane_stride / 64]
  std::int64_t received = 0;     // real samples
  std::int64_t dedispersed = 0;  // outputs made, multiple of 64
  std::int64_t n_tokens = 0;
  double normalize_s = 0, dedisperse_s = 0, detect_s = 0;
  std::vector<search::Token> tokens;
  std::vector<search::Cluster> closed;

  Content(Queue& q, const SearchChainConfig& c)
      : queue(q),
        config(c),
        n_channels(c.band.n_channels()),
        n_trials(static_cast<std::int64_t>(c.dms.size())),
        history(rounded_up(c.max_width, kCell)),
        block(c.block_samples),
        clusterer(cluster_config(c)),
        normalizer(c.normalize) {
    if (block < 1024 || block % 1024 != 0)
      throw ConfigError("search: block_samples is " + std::to_string(block) +
                        "; it must be a multiple of 1024");
    plan_engines();
    allocate();
  }

  static search::ClusterConfig cluster_config(const SearchChainConfig& c) {
    search::ClusterConfig out;
    for (const double dm : c.dms) out.sweep_samples.push_back(dm * c.band.sweep_samples_per_dm());
    return out;
  }

  void plan_engines() {
    search::DedisperseConfig d;
    d.n_channels = n_channels;
    d.n_trials = n_trials;
    d.delays = search::delay_table(config.band, config.dms);
    d.max_code = kMaxCode;
    d.max_outputs = block + kCell;
    d.implementation = config.implementation;
    dedisperser = search::make_dedisperser(queue, d);
    format = search::sum_format(n_channels, d.max_code);
    for (auto& delay : d.delays)
      delay /= static_cast<std::int32_t>(kCell);  // down: never behind the data
    d.max_code = search::kFullCell;
    d.max_outputs = block / kCell + 1;
    mask_dedisperser = search::make_dedisperser(queue, d);
    mask_format = search::sum_format(n_channels, d.max_code);
    search::DetectConfig e;
    e.n_trials = n_trials;
    e.max_width = config.max_width;
    e.max_columns = history + block + kCell;
    e.threshold = config.threshold;
    e.format = format;
    e.implementation = config.implementation;
    detector = search::make_detector(queue, e);
  }

  void allocate() {
    // Events close late: codes stay until the widest cluster that is still open can be refined.
    const std::int64_t lateness = std::min<std::int64_t>(8 * config.max_width + 2 * block, 1 << 16);
    keep = rounded_up(dedisperser->max_delay() + history + lateness, block);
    codes = SlidingCodes(n_channels, keep + 2 * block, search::kReadAhead + kCell, kCodeMean);
    cells = SlidingCodes(n_channels, (keep + 2 * block) / kCell, search::kReadAhead, 0);
    plane_stride = history + block + kCell;
    const std::int64_t size = format == search::SumFormat::u16 ? 2 : 4;
    plane = Buffer<std::byte>(checked_product({n_trials, plane_stride, size}, "dedispersed block"));
    mask_sums = Buffer<std::byte>(n_trials * (block / kCell + 1) *
                                  (mask_format == search::SumFormat::u16 ? 2 : 4));
    weights = Buffer<float>(n_trials * (plane_stride / kCell));
  }

  std::int64_t memory_bytes() const {
    return codes.bytes() + cells.bytes() + plane.bytes() + mask_sums.bytes() + weights.bytes();
  }

  /// Adds n real samples and absent ones to the end of the block.
  void add(const float* data, std::int64_t stride, std::int64_t n) {
    const Stopwatch watch(normalize_s);
    const std::int64_t keep_from = (codes.end() - keep) / kCell * kCell;
    std::uint8_t* to = codes.extend(block, keep_from);
    std::uint8_t* mask = cells.extend(block / kCell, keep_from / kCell);
    for (std::int64_t c = 0; c < n_channels; ++c) {
      std::fill_n(to + c * codes.stride() + n, block - n, static_cast<std::uint8_t>(kCodeMean));
      std::fill_n(mask + c * cells.stride(), block / kCell, std::uint8_t{0});
    }
    if (n > 0)
      normalizer.execute(queue, data, stride, n, to, codes.stride(), mask, cells.stride(), report);
    received += n;
  }

  /// Moves the tail of the plane to its head and fills the rest; returns the new columns.
  std::int64_t dedisperse() {
    const Stopwatch watch(dedisperse_s);
    const std::int64_t target = (codes.end() - dedisperser->max_delay()) / kCell * kCell;
    const std::int64_t n = target - dedispersed;
    if (n <= 0) return 0;
    const std::int64_t size = format == search::SumFormat::u16 ? 2 : 4;
    queue.parallel_for(n_trials, [&](std::int64_t trial) {
      std::byte* row = plane.data() + trial * plane_stride * size;
      if (plane_columns >= history)
        std::memmove(row, row + (plane_columns - history) * size,
                     static_cast<std::size_t>(history * size));
      float* w = weights.data() + trial * (plane_stride / kCell);
      if (plane_columns >= history)
        std::memmove(w, w + (plane_columns - history) / kCell,
                     static_cast<std::size_t>(history / kCell) * sizeof(float));
    });
    dedisperser->execute(queue, codes.at(dedispersed), codes.stride(), n,
                         plane.data() + history * size, plane_stride);
    const std::int64_t n_cells = n / kCell;
    mask_dedisperser->execute(queue, cells.at(dedispersed / kCell), cells.stride(), n_cells,
                              mask_sums.data(), n_cells);
    const auto full = static_cast<float>(n_channels * search::kFullCell);
    for (std::int64_t trial = 0; trial < n_trials; ++trial) {
      float* w = weights.data() + trial * (plane_stride / kCell) + history / kCell;
      for (std::int64_t k = 0; k < n_cells; ++k) {
        const std::int64_t at = trial * n_cells + k;
        w[k] =
            (mask_format == search::SumFormat::u16
                 ? static_cast<float>(reinterpret_cast<const std::uint16_t*>(mask_sums.data())[at])
                 : static_cast<float>(
                       reinterpret_cast<const std::uint32_t*>(mask_sums.data())[at])) /
            full;
      }
    }
    dedispersed = target;
    plane_columns = history + n;
    return n;
  }

  void detect() {
    const Stopwatch watch(detect_s);
    search::DetectInput in;
    in.sums = plane.data();
    in.stride = plane_stride;
    in.n_columns = plane_columns;
    in.first_tick = dedispersed - plane_columns;
    in.first_start = std::max<std::int64_t>(0, -in.first_tick);
    in.end_start = plane_columns - history;
    in.stat_first = in.first_start;
    in.stat_end = std::min(plane_columns, received - in.first_tick);
    in.weights = weights.data();
    in.weight_stride = plane_stride / kCell;
    if (in.end_start <= in.first_start || in.stat_end <= in.stat_first) return;
    tokens.clear();
    detector->execute(queue, in, tokens);
    // Boxcars beyond the end hold absent samples only.
    const auto beyond = [&](const search::Token& t) {
      return t.center() > static_cast<double>(received);
    };
    tokens.erase(std::remove_if(tokens.begin(), tokens.end(), beyond), tokens.end());
    n_tokens += static_cast<std::int64_t>(tokens.size());
    clusterer.add(tokens);
  }

  void advance(std::vector<SearchEvent>& events) {
    if (dedisperse() == 0) return;
    detect();
    clusterer.close_before(dedispersed - history, closed);
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
    e.channel_masked = normalizer.channel_flags();
    const auto n_masked =
        std::count(e.channel_masked.begin(), e.channel_masked.end(), std::uint8_t{1});
    e.masked_fraction = static_cast<double>(n_masked) / static_cast<double>(n_channels);
    const search::SeriesStatistics s = detector->statistics()[static_cast<std::size_t>(best.trial)];
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

SearchChain::SearchChain(Queue& queue, const SearchChainConfig& config)
    : content_(std::make_unique<Content>(queue, config)) {}
SearchChain::~SearchChain() = default;

void SearchChain::feed(const float* data, std::int64_t stride, std::int64_t n,
                       std::vector<SearchEvent>& events) {
  RYLE_ASSERT(n <= content_->block && content_->received == content_->codes.end());
  content_->add(data, stride, n);
  content_->advance(events);
}

void SearchChain::finish(std::vector<SearchEvent>& events) {
  Content& me = *content_;
  while (me.dedispersed - me.history < me.received && me.received > 0) {
    me.add(nullptr, 0, 0);
    me.advance(events);
  }
  me.clusterer.close_all(me.closed);
  me.take_closed(events);
}

std::int64_t SearchChain::n_tokens() const { return content_->n_tokens; }
const search::NormalizeReport& SearchChain::normalize_report() const { return content_->report; }
std::int64_t SearchChain::n_flagged_channels() const {
  const auto& flags = content_->normalizer.channel_flags();
  return std::count(flags.begin(), flags.end(), std::uint8_t{1});
}
std::int64_t SearchChain::memory_bytes() const { return content_->memory_bytes(); }
double SearchChain::normalize_s() const { return content_->normalize_s; }
double SearchChain::dedisperse_s() const { return content_->dedisperse_s; }
double SearchChain::detect_s() const { return content_->detect_s; }
std::string SearchChain::implementation() const {
  return std::string(content_->dedisperser->implementation());
}

}  // namespace ryle::stage
