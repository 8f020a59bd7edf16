// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/cluster.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "ryle/core/error.hpp"
#include "ryle/engine/search/hit_clusterer.hpp"

namespace ryle::search {

using detail::kHitBin;

struct Clusterer::Impl {
  /// Hits that begin within one bin.
  struct Bin : detail::HitBin {
    std::int64_t lo = std::numeric_limits<std::int64_t>::max();  // first and last sample they reach
    std::int64_t hi = std::numeric_limits<std::int64_t>::min();
    std::int64_t last = std::numeric_limits<std::int64_t>::min();  // sample behind any hit
    float strongest = 0;

    void add(const Hit& t, std::int64_t reach) {
      lo = std::min(lo, t.start - reach);
      hi = std::max(hi, t.start + t.width + reach);
      last = std::max(last, t.start + t.width);
      ++count;
      strongest = std::max(strongest, t.snr);
    }
  };
  /// Bins [first, end) are one group, what is looked at ends at `context`.
  struct Group {
    std::int64_t first = 0, end = 0, context = 0;
  };

  detail::HitModel model;
  detail::HitClusterer clusterer;
  std::int64_t reach;
  std::vector<Hit> waiting;
  std::int64_t earliest = std::numeric_limits<std::int64_t>::max();  // starts of those waiting
  std::int64_t latest = std::numeric_limits<std::int64_t>::min();
  std::vector<Bin> bins;
  std::int64_t first_bin = 0;  // of bins
  std::vector<std::int64_t> next_lo;
  std::vector<detail::HitBin> looked_at;
  std::vector<Hit> sorted, left;  // sorted: by bin

  explicit Impl(const ClusterConfig& config)
      : model(config), clusterer(model), reach(config.reach_samples) {}

  static std::int64_t bin_of(std::int64_t start) {
    return (start >= 0 ? start : start - kHitBin + 1) / kHitBin;
  }
  Bin& bin_at(const Hit& t) { return bins[bin_of(t.start) - first_bin]; }
  std::int64_t reach_of(const Hit& t) const {
    return static_cast<std::int64_t>(model.reach(t)) + 1;
  }

  void add(std::span<const Hit> hits) {
    waiting.insert(waiting.end(), hits.begin(), hits.end());
    for (const Hit& t : hits) {
      earliest = std::min(earliest, t.start);
      latest = std::max(latest, t.start);
    }
  }

  void fill_bins() {
    first_bin = bin_of(earliest);
    bins.assign(bin_of(latest) - first_bin + 1, Bin{});
    for (const Hit& t : waiting) bin_at(t).add(t, reach_of(t));
    next_lo.resize(bins.size() + 1);
    next_lo.back() = std::numeric_limits<std::int64_t>::max();
    find_next_lo(0, bins.size());
  }
  void find_next_lo(std::size_t first, std::size_t end) {
    for (std::size_t k = end; k-- > first;) next_lo[k] = std::min(next_lo[k + 1], bins[k].lo);
  }

  /// End of the group that begins at a bin: where the next hits do not reach, or, of one that is
  /// too long, before its weakest bin; then hits behind it are looked at, too. @return whether no
  /// hit from `tick` on can change it
  bool find_end(std::int64_t tick, Group& group) const {
    const std::int64_t longest = std::max<std::int64_t>(2, 2 * reach / kHitBin);
    std::int64_t hi = std::numeric_limits<std::int64_t>::min();
    const auto n = static_cast<std::int64_t>(bins.size());
    for (group.end = group.first; group.end < std::min(n, group.first + longest); ++group.end) {
      hi = std::max(hi, bins[group.end].hi);
      if (next_lo[group.end + 1] > hi) {
        group.context = ++group.end;
        return tick == std::numeric_limits<std::int64_t>::max() || tick - reach > hi;
      }
    }
    if (group.end == n) return false;
    const std::int64_t behind = (first_bin + group.end) * kHitBin;
    group.end = weakest_between(group.first + longest / 2, group.end);
    group.context = context_of(group);
    return tick == std::numeric_limits<std::int64_t>::max() || tick - reach >= behind;
  }

  /// Behind the last bin within reach of the cut whose hits have to do with those before it.
  std::int64_t context_of(const Group& group) const {
    std::int64_t hi = std::numeric_limits<std::int64_t>::min(), context = group.end;
    for (std::int64_t b = group.first; b < group.end; ++b) hi = std::max(hi, bins[b].hi);
    const std::int64_t cut = (first_bin + group.end) * kHitBin;
    const std::int64_t maximum = std::min(std::ssize(bins), group.end + reach / kHitBin);
    for (std::int64_t b = group.end; b < maximum; ++b)
      if (bins[b].lo < cut || (first_bin + b) * kHitBin < hi) context = b + 1;
    return context;
  }

  /// Strongest hit with samples on both sides of the beginning of a bin.
  float across(std::int64_t bin) const {
    float maximum = 0;
    const std::int64_t tick = (first_bin + bin) * kHitBin;
    for (std::int64_t b = std::max<std::int64_t>(0, bin - kMaxWidth / kHitBin - 1); b < bin; ++b)
      if (bins[b].last > tick) maximum = std::max(maximum, bins[b].strongest);
    return maximum;
  }

  /// The middle of the longest run of bins the least lies across.
  std::int64_t weakest_between(std::int64_t first, std::int64_t end) const {
    float minimum = std::numeric_limits<float>::max();
    std::int64_t best = first, longest = 0;
    for (std::int64_t b = first; b < end;) {
      const float here = across(b);
      std::int64_t run = 1;
      while (b + run < end && across(b + run) == here) ++run;
      if (here < minimum || (here == minimum && run > longest)) {
        minimum = here;
        longest = run;
        best = b + run / 2;
      }
      b += run;
    }
    return best;
  }

  /// The next group from `group.first` on that is complete.
  bool next_group(std::int64_t tick, Group& group) const {
    const auto n = std::ssize(bins);
    while (group.first < n && bins[group.first].count == 0) ++group.first;
    return group.first < n && find_end(tick, group);
  }

  void sort_hits() {
    std::int64_t n = 0;
    for (Bin& b : bins) {
      b.begin = n;
      n += b.count;
      b.count = 0;
    }
    sorted.resize(waiting.size());
    for (const Hit& t : waiting) {
      Bin& b = bin_at(t);
      sorted[b.begin + b.count++] = t;
    }
  }

  /// One group through the clusterer. What belongs to events behind its end goes on waiting.
  void find_events(Group& g, std::vector<Cluster>& closed) {
    const auto first = static_cast<std::size_t>(g.first), end = static_cast<std::size_t>(g.context);
    looked_at.assign(bins.begin() + g.first, bins.begin() + g.context);
    const std::int64_t cut = g.context == g.end ? std::numeric_limits<std::int64_t>::max()
                                                : (first_bin + g.end) * kHitBin;
    left.clear();
    clusterer.find_events(first_bin + g.first, sorted, looked_at, cut, closed, left);
    for (std::size_t b = first; b < end; ++b) {
      const std::int64_t begin = bins[b].begin;
      bins[b] = Bin{};
      bins[b].begin = begin;
    }
    for (const Hit& t : left) {
      Bin& b = bin_at(t);
      sorted[b.begin + b.count] = t;
      b.add(t, reach_of(t));
    }
    find_next_lo(first, end);
  }

  void close(std::int64_t tick, std::vector<Cluster>& closed) {
    // No group is complete before its first hit and its reach are.
    if (waiting.empty() || tick - reach <= earliest) return;
    fill_bins();
    Group group;
    if (!next_group(tick, group)) return;
    sort_hits();
    const std::size_t first = closed.size();
    do {
      find_events(group, closed);
    } while (next_group(tick, group));
    waiting.clear();
    earliest = std::numeric_limits<std::int64_t>::max();
    latest = std::numeric_limits<std::int64_t>::min();
    for (const Bin& b : bins) add({sorted.data() + b.begin, static_cast<std::size_t>(b.count)});
    std::sort(closed.begin() + static_cast<std::ptrdiff_t>(first), closed.end(),
              [](const Cluster& a, const Cluster& b) {
                return std::tie(a.best.start, a.best.trial, a.best.width) <
                       std::tie(b.best.start, b.best.trial, b.best.width);
              });
  }
};

Clusterer::Clusterer(const ClusterConfig& config) {
  if (config.sweep_samples.empty()) throw ConfigError("clusters: no trials");
  if (config.max_width < 1 || config.max_width > kMaxWidth)
    throw ConfigError("clusters: max_width is " + std::to_string(config.max_width) +
                      " samples; 1 .. " + std::to_string(kMaxWidth));
  if (config.reach_samples < kHitBin || config.reach_samples > 1 << 20)
    throw ConfigError("clusters: reach_samples is " + std::to_string(config.reach_samples) +
                      "; 64 .. 1048576");
  impl_ = std::make_unique<Impl>(config);
}
Clusterer::~Clusterer() = default;

void Clusterer::add(std::span<const Hit> hits) { impl_->add(hits); }
void Clusterer::close_before(std::int64_t tick, std::vector<Cluster>& closed) {
  impl_->close(tick, closed);
}
void Clusterer::close_all(std::vector<Cluster>& closed) {
  impl_->close(std::numeric_limits<std::int64_t>::max(), closed);
}
std::int64_t Clusterer::earliest_open() const { return impl_->earliest; }
std::int64_t Clusterer::n_open_hits() const {
  return static_cast<std::int64_t>(impl_->waiting.size());
}

}  // namespace ryle::search
