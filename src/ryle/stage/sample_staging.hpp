// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ryle/core/absent.hpp"
#include "ryle/core/samples.hpp"
#include "ryle/device/buffer.hpp"

namespace ryle::stage {

/// The stretch of raw samples the channelizer can see: the history its filter and delays need, then
/// what just arrived. Fixed capacity, contiguous, so that the engine stays a pure function of one
/// array. Keeps the layout of its input: interleaved (all inputs of an instant together) or planar
/// (a row per input).
class SampleStaging {
 public:
  /// `layout` of the samples append() brings; n_inputs rows; capacity in ticks.
  SampleStaging(const SampleLayout& layout, std::int64_t n_inputs, std::int64_t capacity_ticks,
                MemorySpace space);

  /// Layout of samples() (planar rows are spaced by the capacity).
  const SampleLayout& layout() const { return layout_; }
  const void* samples() const { return buffer_.data(); }
  std::int64_t used_bytes() const;
  std::int64_t bytes() const { return buffer_.bytes(); }
  Tick begin() const { return begin_; }
  Tick end() const { return begin_ + n_ticks_; }
  std::span<const AbsentSpan> absent() const { return absent_; }
  std::int64_t free_ticks() const { return capacity_ - n_ticks_; }

  /// Empties the staging; the next append starts at `first`.
  void restart(Tick first);
  /// Forgets ticks before `tick` (rounded down to whole bytes).
  void drop_before(Tick tick);
  /// Appends n ticks that follow end(), read from `source` in its own layout starting at its tick
  /// `offset`.
  void append(const void* source, const SampleLayout& source_layout, std::int64_t offset,
              std::int64_t n, std::span<const AbsentSpan> absent);
  /// Appends n ticks of which nothing arrived.
  void append_absent(std::int64_t n);

 private:
  bool planar() const { return planar_; }
  std::byte* row(std::int64_t input) const;

  SampleLayout layout_;
  std::int64_t n_inputs_;
  std::int64_t capacity_;
  bool planar_;
  Tick begin_ = 0;
  std::int64_t n_ticks_ = 0;
  Buffer<std::byte> buffer_;
  std::vector<AbsentSpan> absent_;
};

}  // namespace ryle::stage
