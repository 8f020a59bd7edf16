// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>

#include "ryle/engine/correlate/correlate.hpp"

namespace ryle::pipeline {

/// The sums of a dump on their way from an engine to host memory, while the engine sums the next
/// one. On a GPU they go to a second place there at once, and from it to the host, piece by piece,
/// beside all other work; on the CPU they are there at once. begin() belongs to the stage thread,
/// receive() to any one thread, never both at a time.
class AsyncReadback {
 public:
  /// @param config of the correlator
  AsyncReadback(const Queue& work, const correlate::Config& config);
  ~AsyncReadback();

  /// Ends the correlator's dump, asynchronously on the queue. @pre the dump before was received
  void begin(Queue& work, correlate::Correlator& correlator);
  /// Waits until all that the queue was given before begin() is done and the sums are here, and
  /// writes them and their counts as channels from `first_channel` on of `sums`, which gets room
  /// for n_channels. @throws DeviceError
  void receive(correlate::Sums& sums, std::int64_t first_channel, std::int64_t n_channels);
  /// Of device and page-locked memory.
  std::int64_t bytes() const;

 private:
  struct OnGpu;
  std::int64_t n_pairs_;
  std::int64_t n_channels_;
  bool integer_ = true;
  correlate::Sums here_;  // CPU; on a GPU the counts and n_spectra
  std::unique_ptr<OnGpu> gpu_;
};

}  // namespace ryle::pipeline
