// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "ryle/engine/search/baseline.hpp"
#include "ryle/engine/search/cluster.hpp"
#include "ryle/engine/search/normalize.hpp"
#include "ryle/engine/search/refine.hpp"
#include "ryle/pipeline/search/search_checks.hpp"
#include "ryle/pipeline/search/search_engines.hpp"

/// Hits of one beam -> refined events: the part of a search that is on the host wherever the
/// engines are.
namespace ryle::pipeline {

/// A cluster and what the matched filter makes of it.
struct SearchEvent {
  search::Cluster cluster;
  search::RefinedPulse pulse;
  bool refined = false;             ///< else from the boxcar: the codes were gone
  double masked_fraction = 0;       ///< of channels
  bool rfi_suspect = false;         ///< on a burst that may be interference and was left in
  std::vector<std::uint8_t> codes;  ///< [channel][window], for the picture; may be empty
  std::int64_t window_first = 0, window_samples = 0;
  std::vector<std::uint8_t> channel_masked;
  double noise = 0;  ///< rms of one channel's code
  PulseChecks checks;
};

/// What a chain did so far.
struct SearchCounts {
  std::int64_t n_hits = 0;           ///< that went into clusters
  std::int64_t n_hits_dropped = 0;   ///< by a threshold that was raised
  std::int64_t n_blocks_raised = 0;  ///< blocks in which it was
  double highest_threshold = 0;      ///< of those; 0 = never raised
  double normalize_s = 0, dedisperse_s = 0, detect_s = 0, cluster_s = 0;
  search::NormalizeReport normalize;
  void add(const SearchCounts& other);
};

/// Columns that events of a block are looked up in; ticks.
struct SearchExtent {
  std::int64_t received = 0;     ///< samples so far, absent ones included
  std::int64_t searched = 0;     ///< starts before it have been searched
  std::int64_t codes_first = 0;  ///< codes [first, end) are still there
  std::int64_t codes_end = 0;
};

/// What is known of the beam when a cluster closes.
struct SearchMetadata {
  const std::vector<std::uint8_t>* channel_masked = nullptr;
  const std::vector<search::TickRange>* undecided = nullptr;
  /// Codes [from, to) of all channels to out[channel * stride + k].
  std::function<void(std::int64_t from, std::int64_t to, std::uint8_t* out, std::int64_t stride)>
      copy_codes;
};

/// Samples of codes a chain keeps: what dedispersion still needs, and what late events look at.
struct SearchReach {
  std::int64_t lateness = 0;
  std::int64_t keep = 0;  ///< whole blocks
};
SearchReach search_reach(const SearchChainConfig& config, std::int64_t max_delay,
                         std::int64_t history);

/// Clusters hits of one beam, block by block, and refines each cluster when it closes: when no
/// later hit can belong to it. One thread at a time calls it.
class SearchTracker {
 public:
  explicit SearchTracker(const SearchChainConfig& config);

  /// Hits of one block, which are reordered and thinned.
  void take(std::vector<search::Hit>& hits, const std::vector<search::SeriesStatistics>& statistics,
            std::int64_t n_new, const SearchExtent& extent, const SearchMetadata& metadata,
            std::vector<SearchEvent>& events);
  /// No more blocks.
  void finish(const SearchExtent& extent, const SearchMetadata& metadata,
              std::vector<SearchEvent>& events);

  /// First sample of any cluster that is still open.
  std::int64_t earliest_open() const { return clusterer_.earliest_open(); }
  SearchCounts& counts() { return counts_; }
  const SearchCounts& counts() const { return counts_; }

 private:
  void raise_threshold(std::vector<search::Hit>& hits, std::int64_t n_new);
  void take_closed(const SearchExtent& extent, const SearchMetadata& metadata,
                   std::vector<SearchEvent>& events);
  SearchEvent event_of(const search::Cluster& cluster, const SearchExtent& extent,
                       const SearchMetadata& metadata) const;
  void copy_window(const SearchExtent& extent, const SearchMetadata& metadata,
                   SearchEvent& e) const;
  void keep_statistics(const std::vector<search::SeriesStatistics>& now, std::int64_t end);
  search::SeriesStatistics statistics_of(const search::Hit& t) const;
  void measure_again(const SearchExtent& extent, const SearchMetadata& metadata, SearchEvent& e,
                     search::SeriesStatistics& s) const;
  void look_at_other_dms(const SearchExtent& extent, const SearchMetadata& metadata,
                         SearchEvent& e) const;
  double excess_of_present(const std::vector<std::uint8_t>& codes, std::int64_t stride,
                           std::int64_t first, std::int64_t received, double dm,
                           const search::Hit& t) const;
  void append(SearchEvent e, std::size_t first, std::vector<SearchEvent>& events) const;

  /// Mean and rms of the trials as the boxcars of one block had them.
  struct BlockStatistics {
    std::int64_t end = 0;                      // of the starts
    std::vector<search::SeriesStatistics> of;  // [trial]
  };

  SearchChainConfig config_;
  std::int64_t n_channels_;
  search::Clusterer clusterer_;
  std::deque<BlockStatistics> statistics_;  // of the last blocks with data
  std::vector<search::Cluster> closed_;
  SearchCounts counts_;
};

}  // namespace ryle::pipeline
