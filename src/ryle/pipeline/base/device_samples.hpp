// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "ryle/core/samples.hpp"
#include "ryle/pipeline/base/device_ring.hpp"

namespace ryle::pipeline {

/// Samples that come in chunks, on the device where the engines of one queue read them: brought
/// once, behind the history that filters and delays look back on, and turned there so that each
/// input's samples lie together where that is faster (CUDA, dense words). Not thread safe: one
/// stage thread owns it.
class DeviceSamples {
 public:
  struct Setup {
    SampleLayout layout;  ///< of the chunks
    std::int64_t n_inputs = 0;
    int n_slots = 4;                 ///< chunks on the device, waiting ones included
    std::int64_t chunk_ticks = 0;    ///< at most, of every push(); a multiple of kGroupTicks
    std::int64_t history_ticks = 0;  ///< read again before every chunk
    /// Turned in tests on the CPU, too, where it gains nothing.
    bool always_transposed = false;
    /// In tests: queues other than make_ring_queues().
    std::function<std::unique_ptr<RingQueues>(const Queue&, int n_slots)> ring_queues;
  };
  DeviceSamples(const Queue& queue, const Setup& setup);

  /// What the engines read.
  const SampleLayout& layout() const { return turned_ ? *turned_ : setup_.layout; }

  bool full() const { return ring_.full(); }
  bool empty() const { return ring_.empty(); }
  /// Begins to copy n ticks (whole groups but for the last before restart()), which follow those
  /// before. The memory is read until wait_copied() returns.
  void push(const void* samples, std::int64_t n_ticks);
  /// Returns when at most the last `in_flight` chunks pushed may still be read.
  void wait_copied(int in_flight = 0) { ring_.wait_copied(in_flight); }
  /// The oldest chunk that was not released, with history before it: what the queue is given until
  /// release() finds it in layout(). @pre !empty()
  struct Stretch {
    const void* samples = nullptr;
    std::int64_t n_history = 0;  ///< ticks, whole groups; few after the start or restart()
    std::int64_t n_ticks = 0;    ///< of the chunk itself
  };
  Stretch front();
  void release();
  /// The next chunk does not follow the one before.
  void restart() { ring_.restart(); }

  std::int64_t history_ticks() const { return setup_.history_ticks; }  ///< in whole groups
  std::int64_t bytes() const { return ring_.bytes() + rows_.bytes(); }

  /// Pieces of samples begin where an engine may want them, and on whole bytes.
  static constexpr std::int64_t kGroupTicks = 64;

 private:
  std::int64_t bytes_of(std::int64_t n_ticks) const {
    return (n_ticks * setup_.layout.sample_stride_bits + 7) / 8;
  }

  Queue queue_;
  Setup setup_;
  std::optional<SampleLayout> turned_;
  DeviceRing ring_;
  std::deque<std::int64_t> n_ticks_;  // of the chunks in the ring
  Buffer<std::byte> rows_;  // of turned samples; used again by every chunk, in the queue's order
};

}  // namespace ryle::pipeline
