// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ryle/pipeline/search/search_beams.hpp"
#include "ryle/pipeline/search/search_chain.hpp"

namespace ryle::pipeline {

struct BeamSearchConfig {
  SearchChainConfig chain;
  BeamGroupConfig beams;
  int n_workers = 0;  ///< 0 = all cores; beams are split over them, one beam uses all
  /// Beams are split over these (beam_range()); the same one twice is allowed. Empty: the CPU, or
  /// what chain.implementation names.
  std::vector<int> devices;
  int n_streams = 8;  ///< beams that a device searches at a time
};

/// Blocks of power of any number of beams -> events, each pulse once. Events do not depend on the
/// number of workers or devices. One thread calls it; beams of a block are worked on by its
/// workers, or on the devices, before feed() returns. Gaps are NaN or a block that is nullptr.
class BeamSearch {
 public:
  explicit BeamSearch(const BeamSearchConfig& config);
  ~BeamSearch();
  BeamSearch(const BeamSearch&) = delete;
  BeamSearch& operator=(const BeamSearch&) = delete;

  /// The next samples of all beams: block_samples of them, fewer only in the last call before
  /// finish(); nullptr = none of them arrived. @shape data [beam][channel][time] f32, NaN = absent
  void feed(const float* data, std::int64_t beam_stride, std::int64_t channel_stride,
            std::int64_t n, std::vector<BeamEvent>& events);
  /// The same from memory of the devices: power[k] of the beams of share k; strides as above.
  /// @param read called once nobody reads the power any more, before the sums; on some thread
  void feed_devices(const std::vector<const float*>& power, std::int64_t beam_stride,
                    std::int64_t channel_stride, std::int64_t n, std::vector<BeamEvent>& events,
                    const std::function<void()>& read = {});
  /// Ends the data. The next feed() is of new data, sample 0 again.
  void finish(std::vector<BeamEvent>& events);
  /// Between finish() and feed(): the new data begin `tick` samples after the first of all, from
  /// which the times of the user's mask count.
  void begin_at(std::int64_t tick);

  SearchCounts counts() const;              ///< of all beams
  std::int64_t n_flagged_channels() const;  ///< of the beam with the most
  std::int64_t memory_bytes() const;
  std::string implementation() const;  ///< of the dedispersion
  /// Of all that runs, devices last when there are any.
  std::vector<std::string> implementations() const;
  search::TrackError track_error() const;  ///< of the sums, against the plan
  std::int64_t n_samples() const;          ///< since the start or the last finish()
  std::int64_t max_delay_samples() const;

 private:
  const SearchEngines& any_engines() const;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ryle::pipeline
