// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "ryle/core/time.hpp"

namespace ryle {

/// The clock of each segment whose chunks may still be with the consumer: a sender that was started
/// again need not keep its grid. One thread begins segments, others ask.
class SegmentClocks {
 public:
  /// Remembers `n_kept` segments: a chunk may be of each, and one more has none yet.
  SegmentClocks(const SampleClock& first, std::size_t n_kept) : newest_(first), n_kept_(n_kept) {}

  void begin(std::int64_t segment, const SampleClock& clock) {
    const std::lock_guard lock(mutex_);
    newest_ = clocks_[segment] = clock;
    while (clocks_.size() > n_kept_) clocks_.erase(clocks_.begin());
  }
  SampleClock newest() const {
    const std::lock_guard lock(mutex_);
    return newest_;
  }
  SampleClock of(std::int64_t segment) const {
    const std::lock_guard lock(mutex_);
    const auto it = clocks_.find(segment);
    return it == clocks_.end() ? newest_ : it->second;
  }

 private:
  mutable std::mutex mutex_;
  SampleClock newest_;
  std::map<std::int64_t, SampleClock> clocks_;
  std::size_t n_kept_;
};

}  // namespace ryle
