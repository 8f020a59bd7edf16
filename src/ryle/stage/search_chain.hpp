// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "ryle/device/queue.hpp"
#include "ryle/engine/search/cluster.hpp"
#include "ryle/engine/search/dedisperse.hpp"
#include "ryle/engine/search/detect.hpp"
#include "ryle/engine/search/dispersion.hpp"
#include "ryle/engine/search/normalize.hpp"
#include "ryle/engine/search/refine.hpp"
#include "ryle/stage/search_codes.hpp"

/// Detected power of one beam in blocks -> refined events. Blocks are fixed by the plan, so events
/// do not depend on how the data arrived.
namespace ryle::stage {

struct SearchChainConfig {
  search::Band band;
  std::vector<double> dms;
  search::NormalizeConfig normalize;
  double threshold = 7;
  std::int64_t max_width = 256;
  std::int64_t block_samples = 8192;  ///< multiple of 1024
  std::string implementation = "auto";
};

/// A cluster and what the matched filter makes of it.
struct SearchEvent {
  search::Cluster cluster;
  search::RefinedPulse pulse;
  bool refined = false;             ///< else from the boxcar: the codes were gone
  double masked_fraction = 0;       ///< of channels
  std::vector<std::uint8_t> codes;  ///< [channel][window], for the picture; may be empty
  std::int64_t window_first = 0, window_samples = 0;
  std::vector<std::uint8_t> channel_masked;
  double noise = 0;  ///< rms of one channel's code
};

class SearchChain {
 public:
  SearchChain(Queue& queue, const SearchChainConfig& config);
  ~SearchChain();
  SearchChain(const SearchChain&) = delete;
  SearchChain& operator=(const SearchChain&) = delete;

  /// The next samples: block_samples of them, fewer only in the last call. Appends events that are
  /// complete. @shape data [channel][time] f32
  void feed(const float* data, std::int64_t stride, std::int64_t n,
            std::vector<SearchEvent>& events);
  /// Searches what remains: every start up to the last sample, with the channels there are.
  void finish(std::vector<SearchEvent>& events);

  std::int64_t n_tokens() const;
  const search::NormalizeReport& normalize_report() const;
  std::int64_t n_flagged_channels() const;
  std::int64_t memory_bytes() const;
  double normalize_s() const;
  double dedisperse_s() const;
  double detect_s() const;
  std::string implementation() const;

 private:
  struct Content;
  std::unique_ptr<Content> content_;
};

}  // namespace ryle::stage
