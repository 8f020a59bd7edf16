// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ryle/core/absent.hpp"
#include "ryle/core/samples.hpp"
#include "ryle/device/buffer.hpp"
#include "ryle/device/queue.hpp"

namespace ryle::pipeline {

/// The stretch of raw samples the channelizer can see: the history its filter and delays need, then
/// what just arrived. Fixed capacity, contiguous, time-major (all inputs of an instant together),
/// so that the engine stays a pure function of one array.
class SampleStaging {
 public:
  SampleStaging(const SampleLayout& layout, std::int64_t n_inputs, std::int64_t capacity_ticks,
                MemorySpace space);

  const void* samples() const { return buffer_.data(); }
  std::int64_t bytes() const { return buffer_.bytes(); }
  Tick begin() const { return begin_; }
  Tick end() const { return begin_ + n_ticks_; }
  std::span<const AbsentSpan> absent() const { return absent_; }
  std::int64_t free_ticks() const { return capacity_ - n_ticks_; }

  /// Empties the staging; the next append starts at `first`.
  void restart(Tick first);
  /// Forgets ticks before `tick`, in whole groups of kGroupTicks.
  void drop_before(Tick tick, Queue& queue);
  /// Appends n ticks that follow end(): ticks [offset, offset + n) of `source`.
  /// The workers of a CPU queue copy together.
  void append(const void* source, std::int64_t offset, std::int64_t n,
              std::span<const AbsentSpan> absent, Queue& queue);
  /// Appends n ticks of which nothing arrived.
  void append_absent(std::int64_t n);

  /// Samples move in groups of 64 ticks, so that formats below 8 bits stay on byte boundaries.
  static constexpr std::int64_t kGroupTicks = 64;

 private:
  std::int64_t bytes_of(std::int64_t n_ticks) const {
    return (n_ticks * layout_.sample_stride_bits + 7) / 8;
  }

  SampleLayout layout_;
  std::int64_t n_inputs_;
  std::int64_t capacity_;
  Tick begin_ = 0;
  std::int64_t n_ticks_ = 0;
  Buffer<std::byte> buffer_;
  std::vector<AbsentSpan> absent_;
};

}  // namespace ryle::pipeline
