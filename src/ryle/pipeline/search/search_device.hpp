// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ryle/pipeline/search/search_chain.hpp"

/// Search of some beams on one device: power, codes and sums stay in its memory; hits, and the
/// codes round an event, come to the host.
namespace ryle::pipeline {

/// Rows [first, end) of `n_rows` on the `index`-th of `n_devices`: equal parts, in order.
struct BeamRange {
  std::int64_t first = 0, end = 0;
  std::int64_t size() const { return end - first; }
};
inline BeamRange beam_range(std::int64_t n_rows, std::int64_t n_devices, std::int64_t index) {
  return {n_rows * index / n_devices, n_rows * (index + 1) / n_devices};
}

/// Why this chain cannot run on devices ("" = it can): what the device does not do, or no device.
std::string no_device_search(const SearchChainConfig& config);
/// Device memory of the beams of one device, item by item, beside the engines' own tables; told in
/// every build. @param n_streams beams searched at a time
std::vector<std::pair<std::string, std::int64_t>> device_search_memory(
    const SearchChainConfig& config, std::int64_t n_beams, std::int64_t n_streams);

/// The search of some beams on one device. One thread calls it. take() brings power to codes,
/// search() makes sums, boxcars and events; between the two the next block of power may already be
/// made.
class DeviceSearch {
 public:
  /// @param n_streams beams searched at a time
  DeviceSearch(int device, const SearchChainConfig& config, std::int64_t n_beams,
               std::int64_t n_streams);
  ~DeviceSearch();
  DeviceSearch(const DeviceSearch&) = delete;
  DeviceSearch& operator=(const DeviceSearch&) = delete;

  /// The next samples of all beams, as SearchChain::feed(). found[beam] gets the events.
  /// @shape power [beam][channel][time] f32 in memory of the device; nullptr = none arrived
  void feed(const float* power, std::int64_t beam_stride, std::int64_t channel_stride,
            std::int64_t n, std::vector<SearchEvent>* found);
  /// feed() in two steps: behind the first, nobody reads the power any more.
  void take(const float* power, std::int64_t beam_stride, std::int64_t channel_stride,
            std::int64_t n);
  void search(std::vector<SearchEvent>* found);
  /// The same from host memory.
  void feed_host(const float* power, std::int64_t beam_stride, std::int64_t channel_stride,
                 std::int64_t n, std::vector<SearchEvent>* found);
  void finish(std::vector<SearchEvent>* found);
  /// Sample 0 again, with times that are masked from here on.
  void restart(const search::UserMask& mask);

  std::int64_t complete_before() const;
  SearchCounts counts() const;              ///< of all beams, since the start or restart()
  std::int64_t n_flagged_channels() const;  ///< of the beam with the most
  std::int64_t memory_bytes() const;        ///< of the device
  const SearchEngines& engines() const;
  std::int64_t n_bursts() const;  ///< blocks of beams whose bursts the host decomposed

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ryle::pipeline
