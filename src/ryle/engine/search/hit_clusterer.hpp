// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "ryle/engine/search/cluster.hpp"

/// Private to the engine: the hits of one group decomposed into events (cluster.hpp).
namespace ryle::search::detail {

inline constexpr std::int64_t kHitBin = 64;  ///< samples of starts that are looked through at once
inline constexpr std::int64_t kCrowdedBins = 16;  ///< bins of a cell that holds kMaxEvents at most
inline constexpr int kMaxEvents = 16;

/// What a hit is expected to explain, and how far. @unit samples
struct HitModel {
  explicit HitModel(const ClusterConfig& config);
  static constexpr float kPeaked = 2;
  float noise;  ///< S/N that noise may add
  float root(std::int32_t width) const { return roots[width]; }
  /// Edges of a pulse that a hit may lie on.
  static float margin(float width) { return 0.75f * width + 2; }
  /// How far from a hit another one may lie that it explains. The best boxcar at a sweep d > W
  /// off has d samples, at most the widest: E = S sqrt(W / d), beyond S sqrt(W Wmax) / d.
  float reach(const Hit& t) const {
    const auto width = static_cast<float>(t.width);
    const float ratio = kPeaked * t.snr / min_expected;
    float spread = ratio * ratio * width;
    if (spread > max_width) spread = std::max(max_width, ratio * root(t.width) * root_of_widest);
    return std::min(maximum, spread + margin(width));
  }

  std::vector<float> sweep;  ///< [trial]
  std::vector<float> roots;  ///< [width]: square root
  float max_width, root_of_widest, maximum, min_expected;
};

/// Hits that begin in one bin: `count` of them from `begin` of a list.
struct HitBin {
  std::int64_t begin = 0;
  std::int32_t count = 0;
};

/// Hits of bins of starts, counted from the first bin. Reused from group to group.
class HitClusterer {
 public:
  explicit HitClusterer(const HitModel& model) : model_(model) {}

  /// Groups the hits of `bins` into events. Those that begin before `cut`, at least the first of
  /// them, are appended to `events`, the hits of the others to `left`: those behind a cut are
  /// looked at so that their wings before it do not become events.
  /// @param first_bin its tick is kHitBin times this; decides the cells of a crowded bin
  void find_events(std::int64_t first_bin, std::span<const Hit> hits, std::span<const HitBin> bins,
                   std::int64_t cut, std::vector<Cluster>& events, std::vector<Hit>& left);

 private:
  struct Event {
    float lo = 0, hi = 0, sweep = 0, width = 0, flux = 0;
    float run_lo = 0, run_hi = 0;  // of the widest boxcars that touch
    std::int64_t cell = 0;
    std::int32_t number = 0;
    bool behind_cut = false;
    Cluster sum;
  };
  struct Cell {
    std::vector<std::int32_t> events;
    int composites = 0, joined = 0;
    bool full = false;
  };
  struct Segment {
    float lo, hi, worth;
    std::int32_t id;
  };
  struct HitExtent {
    float lo, hi, sweep, excess;
  };
  struct Range {
    std::size_t first, end;
  };
  struct Joined {
    std::int32_t id, event;
  };

  void sort_in(std::span<const HitBin> bins);
  void place(std::size_t at);
  const Hit& hit(std::size_t at) const { return all_[id_[at]]; }
  std::size_t segment_of(std::size_t bin, int octave) const;
  std::size_t n_bins() const { return begin_.size() / kOctaves; }
  std::size_t bin_at(float x) const;
  Range range(std::size_t segment, float min_sweep, float max_sweep) const;
  template <class Body>
  void for_hits(float lo, float hi, float narrowest, float widest, float min_sweep, float max_sweep,
                const Body& body) const;

  std::int64_t strongest();
  void find_best(std::size_t bin);
  HitExtent extent_of(const Hit& t) const;
  static float expected_flux(const Event& e, const HitExtent& p);
  std::int32_t explained_by(const HitExtent& p) const;
  bool tail_of(const Event& e, std::size_t at) const;
  bool continues(Event& e, std::size_t at) const;
  bool composite(std::size_t at);
  std::int32_t best_about(std::int32_t part) const;
  void new_event(std::int32_t id);
  void sweep(Event& e);
  void sweep_segment(std::size_t segment, Range places, Event& e);
  void join(Event& e, std::int32_t id);
  void remove(std::size_t segment, std::size_t at);
  void compact(std::size_t segment);
  void look(std::size_t bin);
  void join_rest(Event& e, std::size_t segment);
  void rest();
  std::int64_t cell_of(std::size_t bin) const;
  template <class Body>
  void for_events_near(float lo, float hi, const Body& body) const;

  static constexpr int kOctaves = 12;  // of widths, 1 .. kMaxWidth

  const HitModel& model_;
  std::int64_t first_bin_ = 0, cut_ = 0;
  std::span<const Hit> all_;
  float min_excess_ = 0;  // S/N - noise of the weakest hit
  // [bin][octave]: a segment of places in order of the trial; best: -1 none, -2 to be found
  std::vector<std::int32_t> begin_, size_, dead_, best_;
  std::vector<std::int32_t> best_of_bin_, alive_;  // [bin]
  // [place]: interval from the first bin, sweep, (S/N - noise) sqrt(width), infinite of what is
  // gone; bits of the S/N, 0 = a composite, -1 = gone; index in all_
  std::vector<float> lo_, hi_, sweep_, excess_;
  std::vector<std::int32_t> rank_, id_;
  std::vector<Event> events_;
  std::vector<Cell> cells_;
  std::vector<Segment> segments_;
  std::vector<std::int32_t> parts_;  // of a composite
  std::vector<float> sums_;
  std::vector<Joined> behind_;  // hits of events behind the cut
};

}  // namespace ryle::search::detail
