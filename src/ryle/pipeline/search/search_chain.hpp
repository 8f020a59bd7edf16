// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "ryle/pipeline/search/search_codes.hpp"
#include "ryle/pipeline/search/search_engines.hpp"
#include "ryle/pipeline/search/search_tracker.hpp"

/// Detected power of one beam in blocks -> refined events. Blocks are fixed by the plan, so events
/// do not depend on how the data arrived.
namespace ryle::pipeline {

/// The state of one beam: codes, sums that boxcars still need, open clusters. Engines are lent with
/// every call and must be of the same configuration. One thread at a time calls it, whichever;
/// events come out of the call that completes them, flagged or not. Blocks that never came are
/// searched as absent.
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
  std::int64_t complete_before() const;
  const SearchCounts& counts() const;
  std::int64_t n_flagged_channels() const;
  std::int64_t memory_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ryle::pipeline
