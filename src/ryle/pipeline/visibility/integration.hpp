// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <cstdint>

#include "ryle/core/error.hpp"
#include "ryle/core/time.hpp"

namespace ryle::pipeline {

/// Where a stream of gulps stands in its integrations of `length` spectra: images, dumps. A jump
/// forward counts as spectra that never came (nominal, without weight; a whole integration of
/// nothing is not made), a new segment ends the open one. An integration begins where data begin.
class Integration {
 public:
  explicit Integration(std::int64_t length) : length_(length) {}

  /// The next gulp starts at `first`; `close` is called when that ends the open integration.
  /// Returns the spectra that still go into the open one: the gulp may not be longer.
  template <class Close>
  std::int64_t advance(std::int64_t first, std::int64_t segment, const SampleClock& clock,
                       Close close) {
    if (segment != segment_) {
      if (filled_ > 0) close();
      segment_ = segment;
    }
    clock_ = clock;
    const std::int64_t gap = first - first_ - filled_;
    if (filled_ > 0 && gap > 0) {
      const std::int64_t lost = std::min(gap, room());
      filled_ += lost;
      total_ += lost;
      if (room() == 0) close();
    }
    if (filled_ == 0) first_ = first;
    RYLE_ASSERT(first == first_ + filled_);
    return room();
  }
  /// A gulp has been added. @pre n <= room()
  void add(std::int64_t n) {
    filled_ += n;
    total_ += n;
  }
  /// The open integration is over.
  void restart() {
    first_ += filled_;
    filled_ = 0;
  }

  std::int64_t room() const { return length_ - filled_; }
  std::int64_t length() const { return length_; }
  std::int64_t first() const { return first_; }    ///< spectrum of the open integration
  std::int64_t filled() const { return filled_; }  ///< nominal spectra in it
  std::int64_t total() const { return total_; }    ///< nominal spectra so far
  std::int64_t segment() const { return segment_; }
  const SampleClock& clock() const { return clock_; }

 private:
  std::int64_t length_;
  std::int64_t first_ = 0, filled_ = 0, total_ = 0;
  std::int64_t segment_ = -1;
  SampleClock clock_;
};

}  // namespace ryle::pipeline
