// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "ryle/engine/search/cluster.hpp"
#include "ryle/engine/search/normalize.hpp"
#include "ryle/engine/search/refine.hpp"
#include "ryle/stage/search_codes.hpp"
#include "ryle/stage/search_engines.hpp"

/// Detected power of one beam in blocks -> refined events. Blocks are fixed by the plan, so events
/// do not depend on how the data arrived.
namespace ryle::stage {

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
};

/// What a chain did so far.
struct SearchCounts {
  std::int64_t n_tokens = 0;          ///< that went into clusters
  std::int64_t n_tokens_dropped = 0;  ///< by a threshold that was raised
  std::int64_t n_blocks_raised = 0;   ///< blocks in which it was
  double highest_threshold = 0;       ///< of those; 0 = never raised
  double normalize_s = 0, dedisperse_s = 0, detect_s = 0, cluster_s = 0;
  search::NormalizeReport normalize;
  void add(const SearchCounts& other);
};

/// The state of one beam: codes, sums that boxcars still need, open clusters. Engines are lent with
/// every call and must be of the same configuration.
class SearchChain {
 public:
  SearchChain(const SearchEngines& engines, const SearchChainConfig& config);
  ~SearchChain();
  SearchChain(const SearchChain&) = delete;
  SearchChain& operator=(const SearchChain&) = delete;

  /// The next samples: block_samples of them, fewer only in the last call; nullptr = none of them
  /// arrived. Appends events that are complete. @shape data [channel][time] f32, NaN = absent
  void feed(SearchEngines& engines, const float* data, std::int64_t stride, std::int64_t n,
            std::vector<SearchEvent>& events);
  /// Searches what remains: every start up to the last sample, with the channels there are.
  void finish(SearchEngines& engines, std::vector<SearchEvent>& events);

  /// Boxcars of events still to come have their centers at or behind it, except those of clusters
  /// that stay open for longer than the codes are kept (storms of interference).
  std::int64_t settled_before() const;
  const SearchCounts& counts() const;
  std::int64_t n_flagged_channels() const;
  std::int64_t memory_bytes() const;

 private:
  struct Content;
  std::unique_ptr<Content> content_;
};

}  // namespace ryle::stage
