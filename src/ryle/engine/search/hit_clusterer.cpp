// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/hit_clusterer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

namespace ryle::search::detail {
namespace {

constexpr std::size_t kHitChunk = 256;
constexpr int kMaxComposites = 32, kMaxJoined = 4096;  // of a cell, looked at one by one
constexpr std::size_t kMaxSegments = 512;
constexpr float kSegmentCost = 8;  // S/N squared: place and width of one more pulse

std::size_t index(std::int64_t k) { return static_cast<std::size_t>(k); }

bool stronger(const Hit& a, const Hit& b) {
  if (a.snr != b.snr) return a.snr > b.snr;
  return std::tie(a.start, a.trial, a.width) < std::tie(b.start, b.trial, b.width);
}

std::size_t octave_of(std::int32_t width) {
  return static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(width)) - 1);
}

/// Largest of the ranks; positive floats are ordered as their bits are.
std::int32_t highest(const std::int32_t* rank, std::size_t n) {
  std::int32_t maximum = 0;
  for (std::size_t k = 0; k < n; ++k) maximum = rank[k] > maximum ? rank[k] : maximum;
  return maximum;
}

}  // namespace

HitModel::HitModel(const ClusterConfig& config)
    : noise(static_cast<float>(std::min(4.0, 0.57 * config.threshold))),
      max_width(static_cast<float>(config.max_width)),
      root_of_widest(std::sqrt(max_width)),
      maximum(static_cast<float>(config.reach_samples)),
      min_expected(static_cast<float>(config.threshold) - noise) {
  for (const double s : config.sweep_samples) sweep.push_back(static_cast<float>(s));
  for (std::int64_t w = 0; w <= kMaxWidth; ++w) roots.push_back(std::sqrt(static_cast<float>(w)));
}

std::int64_t HitClusterer::cell_of(std::size_t bin) const {
  const auto floor_cell = [](std::int64_t b) {
    return (b >= 0 ? b : b - kCrowdedBins + 1) / kCrowdedBins;
  };
  return floor_cell(first_bin_ + static_cast<std::int64_t>(bin)) - floor_cell(first_bin_);
}

std::size_t HitClusterer::segment_of(std::size_t bin, int octave) const {
  return bin * kOctaves + index(octave);
}

/// Bin of a place in time, the nearest one of those there are.
std::size_t HitClusterer::bin_at(float x) const {
  const auto last = static_cast<float>(n_bins() - 1);
  return static_cast<std::size_t>(
      std::clamp(std::floor(x / static_cast<float>(kHitBin)), 0.0f, last));
}

inline HitClusterer::HitExtent HitClusterer::extent_of(const Hit& t) const {
  const auto lo = static_cast<float>(t.start - first_bin_ * kHitBin);
  return {lo, lo + static_cast<float>(t.width), model_.sweep[index(t.trial)],
          (t.snr - model_.noise) * model_.root(t.width)};
}

inline void HitClusterer::place(std::size_t at) {
  const Hit& t = hit(at);
  const HitExtent p = extent_of(t);
  lo_[at] = p.lo;
  hi_[at] = p.hi;
  sweep_[at] = p.sweep;
  excess_[at] = p.excess;
  rank_[at] = std::bit_cast<std::int32_t>(t.snr);
  min_excess_ = std::min(min_excess_, t.snr - model_.noise);
}

/// Hits by bin, octave of widths and trial: an event is compared with those alone that it may
/// explain.
void HitClusterer::sort_in(std::span<const HitBin> bins) {
  const std::size_t n_segments = bins.size() * kOctaves;
  begin_.assign(n_segments, 0);
  size_.assign(n_segments, 0);
  dead_.assign(n_segments, 0);
  best_.assign(n_segments, -2);
  best_of_bin_.assign(bins.size(), -2);
  alive_.resize(bins.size());
  std::int32_t n = 0;
  for (std::size_t b = 0; b < bins.size(); ++b) {
    alive_[b] = bins[b].count;
    const std::size_t s = segment_of(b, 0);
    const auto mine = all_.subspan(index(bins[b].begin), index(bins[b].count));
    for (const Hit& t : mine) ++size_[s + octave_of(t.width)];
    for (std::size_t o = s; o < s + kOctaves; ++o) {
      begin_[o] = n;
      n += size_[o];
    }
  }
  const std::size_t size = index(n);
  if (lo_.size() < size) {
    for (auto* list : {&lo_, &hi_, &sweep_, &excess_}) list->resize(size);
    rank_.resize(size);
    id_.resize(size);
  }
  std::int32_t next[kOctaves];
  min_excess_ = std::numeric_limits<float>::max();
  for (std::size_t b = 0; b < bins.size(); ++b) {
    const std::size_t s = segment_of(b, 0);
    std::copy_n(begin_.data() + s, kOctaves, next);
    const auto from = static_cast<std::int32_t>(bins[b].begin);
    for (std::int32_t id = from; id < from + bins[b].count; ++id)
      id_[index(next[octave_of(all_[index(id)].width)]++)] = id;
    for (std::size_t o = s; o < s + kOctaves; ++o) {
      const auto first = id_.begin() + begin_[o], end = first + size_[o];
      const auto by_trial = [&](std::int32_t x, std::int32_t y) {
        return all_[index(x)].trial < all_[index(y)].trial;
      };
      if (!std::is_sorted(first, end, by_trial)) std::sort(first, end, by_trial);
      for (auto k = index(begin_[o]); k < index(begin_[o] + size_[o]); ++k) place(k);
    }
  }
}

/// Extents of a segment with sweeps from least to most.
HitClusterer::Range HitClusterer::range(std::size_t segment, float minimum, float maximum) const {
  const std::size_t first = index(begin_[segment]), end = first + index(size_[segment]);
  if (end - first <= 16) return {first, end};
  const float* x = sweep_.data();
  const float* low = std::lower_bound(x + first, x + end, minimum);
  const float* high = std::upper_bound(low, x + end, maximum);
  return {index(low - x), index(high - x)};
}

/// Calls body(place, segment) for what is left from bin of `lo` to bin of `hi`, in octaves that
/// hold widths from narrowest to widest. Few hits of other sweeps and widths may come, too.
template <class Body>
void HitClusterer::for_hits(float lo, float hi, float narrowest, float widest, float minimum,
                            float maximum, const Body& body) const {
  const auto octave = [](float w) {
    return octave_of(static_cast<std::int32_t>(std::clamp(w, 1.0f, static_cast<float>(kMaxWidth))));
  };
  const std::size_t last_bin = bin_at(hi), last_octave = octave(widest);
  for (std::size_t b = bin_at(lo); b <= last_bin; ++b) {
    if (alive_[b] == 0) continue;
    for (std::size_t o = octave(narrowest); o <= last_octave; ++o) {
      const std::size_t segment = b * kOctaves + o;
      const Range r = range(segment, minimum, maximum);
      for (std::size_t k = r.first; k < r.end; ++k)
        if (rank_[k] >= 0) body(k, segment);
    }
  }
}

void HitClusterer::find_best(std::size_t bin) {
  std::int32_t best = -1;
  for (std::size_t s = segment_of(bin, 0); s < segment_of(bin + 1, 0); ++s) {
    if (best_[s] == -2) {
      const std::size_t first = index(begin_[s]), n = index(size_[s]);
      const std::int32_t maximum = highest(rank_.data() + first, n);
      best_[s] = -1;
      for (std::size_t at = first; maximum > 0 && at < first + n; ++at)
        if (rank_[at] == maximum && (best_[s] < 0 || stronger(hit(at), hit(index(best_[s])))))
          best_[s] = static_cast<std::int32_t>(at);
    }
    if (best_[s] >= 0 && (best < 0 || stronger(hit(index(best_[s])), hit(index(best)))))
      best = best_[s];
  }
  best_of_bin_[bin] = best;
}

/// Bin of the strongest hit that is left, -1 = none.
std::int64_t HitClusterer::strongest() {
  std::int64_t found = -1;
  for (std::size_t b = 0; b < alive_.size(); ++b) {
    if (alive_[b] == 0 || cells_[index(cell_of(b))].full) continue;
    if (best_of_bin_[b] == -2) find_best(b);
    if (best_of_bin_[b] < 0) continue;
    if (found < 0 || stronger(hit(index(best_of_bin_[b])), hit(index(best_of_bin_[index(found)]))))
      found = static_cast<std::int64_t>(b);
  }
  return found;
}

/// @eq E sqrt(w) of a hit, less than or equal to 0 where they share nothing
float HitClusterer::expected_flux(const Event& e, const HitExtent& p) {
  const float d = p.sweep - e.sweep;
  const float before = std::max(d, 0.0f), after = std::max(-d, 0.0f);
  const float spread = std::max(e.width, before + after), margin = HitModel::margin(e.width);
  const float shared =
      std::min(p.hi, e.hi + after + margin) - std::max(p.lo, e.lo - before - margin);
  return e.flux * std::min(shared, spread) / spread;
}

template <class Body>
void HitClusterer::for_events_near(float lo, float hi, const Body& body) const {
  constexpr auto kSide = static_cast<float>(kHitBin * kCrowdedBins);
  const auto last = static_cast<float>(cells_.size() - 1);
  const auto first_cell =
      static_cast<std::size_t>(std::clamp(std::floor((lo - model_.maximum) / kSide), 0.0f, last));
  const auto last_cell = static_cast<std::size_t>(
      std::clamp(std::floor((hi + model_.maximum) / kSide) + 1, 0.0f, last));
  for (std::size_t c = first_cell; c <= last_cell; ++c)
    for (const std::int32_t k : cells_[c].events) body(k);
}

/// What is scattered arrives late: an exponential after the pulse. A boxcar that fits one best has
/// 1.26 of its time constants.
bool HitClusterer::tail_of(const Event& e, std::size_t at) const {
  const float late = lo_[at] - e.hi;
  if (!(late > 0 && late < 4 * e.width && std::abs(sweep_[at] - e.sweep) < 2 * e.width))
    return false;
  return hit(at).snr - model_.noise < 0.5f * e.sum.best.snr * std::exp(-late / (0.8f * e.width));
}

/// Segments of something longer than the widest boxcar.
bool HitClusterer::continues(Event& e, std::size_t at) const {
  const auto width = static_cast<float>(hit(at).width);
  if (e.width < 0.75f * model_.max_width || width < 0.125f * model_.max_width || width < 16)
    return false;
  if (std::abs(sweep_[at] - e.sweep) > model_.max_width) return false;
  const float gap = 0.5f * std::max(width, hit(at).snr < 0.5f * e.sum.best.snr ? e.width : 0.0f);
  if (lo_[at] > e.run_hi + gap || hi_[at] < e.run_lo - gap) return false;
  e.run_lo = std::min(e.run_lo, lo_[at]);
  e.run_hi = std::max(e.run_hi, hi_[at]);
  return true;
}

/// The event that explains most of a hit that all of them together explain, -1 = they do not.
std::int32_t HitClusterer::explained_by(const HitExtent& p) const {
  float sum = 0, maximum = 0;
  std::int32_t best = -1;
  for_events_near(p.lo, p.hi, [&](std::int32_t k) {
    const float flux = expected_flux(events_[index(k)], p);
    if (!(flux > 0)) return;
    sum += flux;
    if (flux > maximum) maximum = flux, best = k;
  });
  // What they leave of it would not be a hit.
  const float over = p.excess - model_.min_expected * std::sqrt(p.hi - p.lo);
  return p.excess <= HitModel::kPeaked * sum || over < sum ? best : -1;
}

/// Whether narrower boxcars within it that do not overlap tell more than a hit; they become
/// parts_, the strongest first. Those of other trials see the same samples of power elsewhere.
bool HitClusterer::composite(std::size_t at) {
  const Hit& whole = hit(at);
  if (whole.width < 4) return false;
  const auto width = static_cast<float>(whole.width);
  const float square = whole.snr * whole.snr, edge = 0.125f * width;
  segments_.clear();
  const float lo = lo_[at] - edge, hi = hi_[at] + edge, same = sweep_[at];
  for_hits(lo, hi_[at], 1, 0.6f * width, same, same, [&](std::size_t k, std::size_t) {
    const Hit& t = hit(k);
    if (hi_[k] - lo_[k] <= 0.6f * width && lo_[k] >= lo && hi_[k] <= hi && t.trial == whole.trial &&
        t.snr * t.snr >= 0.1f * square)
      segments_.push_back({lo_[k], hi_[k], t.snr * t.snr - kSegmentCost, id_[k]});
  });
  const auto stronger_segment = [&](const Segment& a, const Segment& b) {
    return stronger(all_[index(a.id)], all_[index(b.id)]);
  };
  if (segments_.size() > kMaxSegments) {
    std::nth_element(segments_.begin(), segments_.begin() + kMaxSegments, segments_.end(),
                     stronger_segment);
    segments_.resize(kMaxSegments);
  }
  // The best set of segments that do not overlap, by their ends (weighted interval scheduling).
  std::sort(segments_.begin(), segments_.end(), [&](const Segment& a, const Segment& b) {
    return a.hi != b.hi ? a.hi < b.hi : stronger_segment(a, b);
  });
  const auto before = [&](std::size_t k) {
    return index(
        std::upper_bound(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(k),
                         segments_[k].lo + 1, [](float x, const Segment& p) { return x < p.hi; }) -
        segments_.begin());
  };
  sums_.assign(segments_.size() + 1, 0.0f);
  for (std::size_t k = 0; k < segments_.size(); ++k)
    sums_[k + 1] = std::max(sums_[k], segments_[k].worth + sums_[before(k)]);
  if (!(sums_.back() > 1.2f * square)) return false;
  parts_.clear();
  for (std::size_t k = segments_.size(); k > 0;) {
    if (sums_[k] == sums_[k - 1]) {
      --k;
      continue;
    }
    parts_.push_back(segments_[k - 1].id);
    k = before(k - 1);
  }
  std::sort(parts_.begin(), parts_.end(), [&](std::int32_t a, std::int32_t b) {
    return stronger(all_[index(a)], all_[index(b)]);
  });
  return true;
}

/// The best hit about a part, in other trials, too.
std::int32_t HitClusterer::best_about(std::int32_t part) const {
  const HitExtent p = extent_of(all_[index(part)]);
  const float width = p.hi - p.lo, middle = p.lo + 0.5f * width;
  std::int32_t best = part;
  for_hits(p.lo - 2 * width, p.hi + width, 0.5f * width, 1.35f * width, p.sweep - width,
           p.sweep + width, [&](std::size_t k, std::size_t) {
             const float w = hi_[k] - lo_[k], d = sweep_[k] - p.sweep;
             if (w >= 0.5f * width && w <= 1.35f * width && std::abs(d) <= width &&
                 std::abs(lo_[k] + 0.5f * (w + d) - middle) <= 0.5f * width &&
                 stronger(hit(k), all_[index(best)]))
               best = id_[k];
           });
  return best;
}

void HitClusterer::join(Event& e, std::int32_t id) {
  const Hit& t = all_[index(id)];
  Cluster& c = e.sum;
  ++c.n_hits;
  c.begin = std::min(c.begin, t.start);
  c.end = std::max(c.end, t.start + t.width);
  c.lowest_trial = std::min(c.lowest_trial, t.trial);
  c.highest_trial = std::max(c.highest_trial, t.trial);
  if (e.behind_cut) behind_.push_back({id, e.number});
}

void HitClusterer::remove(std::size_t segment, std::size_t at) {
  rank_[at] = -1;
  excess_[at] = std::numeric_limits<float>::infinity();
  ++dead_[segment];
  --alive_[segment / kOctaves];
  best_[segment] = best_of_bin_[segment / kOctaves] = -2;
}

/// Moves what is left of a segment together.
void HitClusterer::compact(std::size_t segment) {
  std::size_t to = index(begin_[segment]);
  const std::size_t end = to + index(size_[segment]);
  for (std::size_t from = to; from < end; ++from) {
    if (rank_[from] < 0) continue;
    lo_[to] = lo_[from], hi_[to] = hi_[from], sweep_[to] = sweep_[from];
    excess_[to] = excess_[from], rank_[to] = rank_[from], id_[to] = id_[from];
    ++to;
  }
  size_[segment] = static_cast<std::int32_t>(to) - begin_[segment];
  dead_[segment] = 0;
  best_[segment] = best_of_bin_[segment / kOctaves] = -2;
}

/// Takes the hits of a segment that an event explains.
void HitClusterer::sweep_segment(std::size_t segment, Range places, Event& e) {
  const float margin = HitModel::margin(e.width), flux = HitModel::kPeaked * e.flux;
  std::int32_t taken[kHitChunk];
  for (std::size_t chunk = places.first; chunk < places.end; chunk += kHitChunk) {
    const std::size_t m = std::min(kHitChunk, places.end - chunk);
    const float *lo = lo_.data() + chunk, *hi = hi_.data() + chunk;
    const float *sweep = sweep_.data() + chunk, *excess = excess_.data() + chunk;
    std::int32_t any = 0;
    for (std::size_t k = 0; k < m; ++k) {  // as expected_flux(), without the quotient
      const float d = sweep[k] - e.sweep;
      const float before = d > 0 ? d : 0, after = d < 0 ? -d : 0;
      const float offset = before + after;
      const float spread = offset > e.width ? offset : e.width;
      const float right = e.hi + after + margin, left = e.lo - before - margin;
      float shared = (hi[k] < right ? hi[k] : right) - (lo[k] > left ? lo[k] : left);
      shared = shared < spread ? shared : spread;
      taken[k] = static_cast<std::int32_t>(shared > 0) &
                 static_cast<std::int32_t>(excess[k] * spread <= flux * shared);
      any |= taken[k];
    }
    for (std::size_t k = 0; any != 0 && k < m; ++k)
      if (taken[k] != 0) {
        join(e, id_[chunk + k]);
        remove(segment, chunk + k);
      }
  }
  if (2 * dead_[segment] > size_[segment]) compact(segment);
}

/// Takes the hits that an event explains. Those of width w, an excess x sqrt(w), farther than D
/// in time or in sweep, lie on a part of it that is spread over more than D:
/// @eq x sqrt(w) D > 2 S sqrt(W) w can explain none of them
void HitClusterer::sweep(Event& e) {
  const float reach = model_.reach(e.sum.best), margin = HitModel::margin(e.width);
  const float flux = HitModel::kPeaked * e.flux;
  const float all = std::numeric_limits<float>::max();
  for (int octave = 0; octave < kOctaves; ++octave) {
    const auto widest = static_cast<float>((2 << octave) - 1);
    float side = all;
    if (min_excess_ > 0) side = 1.001f * flux * std::sqrt(widest) / min_excess_ + 1;
    if (side < e.width) continue;
    const std::size_t first =
        bin_at(std::max(e.lo - reach - model_.max_width, e.lo - margin - side - widest));
    const std::size_t last = bin_at(std::min(e.hi + reach, e.hi + margin + side));
    for (std::size_t b = first; b <= last; ++b) {
      const std::size_t s = segment_of(b, octave);
      if (size_[s] == 0) continue;
      const Range r = range(s, e.sweep - side, e.sweep + side);
      if (r.first < r.end) sweep_segment(s, r, e);
    }
  }
}

void HitClusterer::new_event(std::int32_t id) {
  const Hit& t = all_[index(id)];
  const HitExtent p = extent_of(t);
  Event e;
  e.lo = p.lo;
  e.hi = p.hi;
  e.sweep = p.sweep;
  e.width = static_cast<float>(t.width);
  e.run_lo = p.lo - HitModel::margin(e.width);
  e.run_hi = p.hi + HitModel::margin(e.width);
  e.flux = t.snr * model_.root(t.width);
  e.cell = cell_of(index((t.start - first_bin_ * kHitBin) / kHitBin));
  e.number = static_cast<std::int32_t>(events_.size());
  e.behind_cut = t.start >= cut_;
  e.sum = {t, 0, t.start, t.start + t.width, t.trial, t.trial};  // the sweep adds it
  sweep(e);
  Cell& cell = cells_[index(e.cell)];
  cell.events.push_back(e.number);
  cell.full |= cell.events.size() >= index(kMaxEvents);
  events_.push_back(e);
}

/// What is left of a segment, without composites, to one event: no hit is looked up.
void HitClusterer::join_rest(Event& e, std::size_t segment) {
  const std::size_t begin = index(begin_[segment]), end = begin + index(size_[segment]);
  if (e.behind_cut) {
    for (std::size_t at = begin; at < end; ++at)
      if (rank_[at] > 0) join(e, id_[at]);
    return;
  }
  constexpr float kFar = std::numeric_limits<float>::max();
  float lo = kFar, hi = -kFar;
  std::int32_t n = 0;
  for (std::size_t at = begin; at < end; ++at) {
    const bool mine = rank_[at] > 0;
    const float from = mine ? lo_[at] : kFar, to = mine ? hi_[at] : -kFar;
    lo = from < lo ? from : lo;
    hi = to > hi ? to : hi;
    n += static_cast<std::int32_t>(mine);
  }
  if (n == 0) return;
  std::size_t first = begin, last = end - 1;  // in order of the trial
  while (rank_[first] <= 0) ++first;
  while (rank_[last] <= 0) --last;
  const std::int64_t origin = first_bin_ * kHitBin;  // floats hold the whole numbers of a group
  Cluster& c = e.sum;
  c.n_hits += n;
  c.begin = std::min(c.begin, origin + static_cast<std::int64_t>(lo));
  c.end = std::max(c.end, origin + static_cast<std::int64_t>(hi));
  c.lowest_trial = std::min(c.lowest_trial, hit(first).trial);
  c.highest_trial = std::max(c.highest_trial, hit(last).trial);
}

/// Composites and what full cells hold.
void HitClusterer::rest() {
  for (std::size_t b = 0; b < n_bins(); ++b) {
    if (alive_[b] == 0) continue;
    const auto& events = cells_[index(cell_of(b))].events;
    const std::int32_t first = events.empty() ? 0 : events.front();
    const std::size_t last = segment_of(b, kOctaves - 1);
    for (std::size_t s = segment_of(b, 0); s <= last; ++s) {
      join_rest(events_[index(first)], s);
      if (cells_[index(cell_of(b))].composites == 0) continue;
      for (auto at = index(begin_[s]); at < index(begin_[s] + size_[s]); ++at) {
        if (rank_[at] != 0) continue;
        float maximum = 0;
        std::int32_t best = first;
        for_events_near(lo_[at], hi_[at], [&](std::int32_t k) {
          const float flux = expected_flux(events_[index(k)], extent_of(hit(at)));
          if (flux > maximum) maximum = flux, best = k;
        });
        join(events_[index(best)], id_[at]);
      }
    }
  }
}

/// The strongest hit of a bin: belongs to an event, is a composite or begins an event.
void HitClusterer::look(std::size_t bin) {
  const std::size_t at = index(best_of_bin_[bin]);
  const std::size_t segment = segment_of(bin, static_cast<int>(octave_of(hit(at).width)));
  Cell& cell = cells_[index(cell_of(bin))];
  std::int32_t owner = explained_by(extent_of(hit(at)));
  if (owner < 0)
    for_events_near(lo_[at], hi_[at], [&](std::int32_t k) {
      if (owner < 0 && (tail_of(events_[index(k)], at) || continues(events_[index(k)], at)))
        owner = k;
    });
  if (owner >= 0) {
    join(events_[index(owner)], id_[at]);
    remove(segment, at);
    cell.full |= ++cell.joined >= kMaxJoined && !cell.events.empty();
  } else if (cell.composites < kMaxComposites && composite(at)) {
    rank_[at] = 0;
    best_[segment] = best_of_bin_[bin] = -2;
    ++cell.composites;
    for (const std::int32_t part : parts_)
      if (explained_by(extent_of(all_[index(part)])) < 0) new_event(best_about(part));
  } else {
    new_event(id_[at]);
  }
}

void HitClusterer::find_events(std::int64_t first_bin, std::span<const Hit> hits,
                               std::span<const HitBin> bins, std::int64_t cut,
                               std::vector<Cluster>& out, std::vector<Hit>& left) {
  first_bin_ = first_bin;
  cut_ = cut;
  all_ = hits;
  events_.clear();
  behind_.clear();
  cells_.clear();
  sort_in(bins);
  cells_.resize(index(cell_of(bins.size() - 1) + 1));
  for (std::int64_t bin = strongest(); bin >= 0; bin = strongest()) look(index(bin));
  rest();
  std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
  for (const Event& e : events_) earliest = std::min(earliest, e.sum.best.start);
  const std::int64_t limit = std::max(cut, earliest + 1);
  for (const Event& e : events_)
    if (e.sum.best.start < limit) out.push_back(e.sum);
  for (const Joined& j : behind_)
    if (events_[index(j.event)].sum.best.start >= limit) left.push_back(all_[index(j.id)]);
}

}  // namespace ryle::search::detail
