// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>

#include "ryle/core/error.hpp"
#include "ryle/device/buffer.hpp"

namespace ryle::pipeline {

/// The last codes of every channel in one piece of memory. @shape [channel][time]; column 0 is
/// first().
class SlidingCodes {
 public:
  SlidingCodes() = default;
  SlidingCodes(std::int64_t n_channels, std::int64_t capacity, std::int64_t slack,
               std::uint8_t fill)
      : n_channels_(n_channels), capacity_(capacity), memory_(n_channels * capacity + slack) {
    std::memset(memory_.data(), fill, static_cast<std::size_t>(memory_.bytes()));
  }
  std::int64_t first() const { return first_; }
  std::int64_t end() const { return first_ + used_; }
  std::int64_t stride() const { return capacity_; }
  std::int64_t bytes() const { return memory_.bytes(); }
  const std::uint8_t* at(std::int64_t tick) const { return memory_.data() + (tick - first_); }

  /// Room for n more columns, forgetting what lies before `keep_from`; returns where channel 0
  /// goes.
  std::uint8_t* extend(std::int64_t n, std::int64_t keep_from) {
    if (used_ + n > capacity_) {
      const std::int64_t drop = std::clamp<std::int64_t>(keep_from - first_, 0, used_);
      for (std::int64_t c = 0; c < n_channels_; ++c) {
        std::uint8_t* row = memory_.data() + c * capacity_;
        std::memmove(row, row + drop, static_cast<std::size_t>(used_ - drop));
      }
      first_ += drop;
      used_ -= drop;
    }
    RYLE_ASSERT(used_ + n <= capacity_);
    std::uint8_t* to = memory_.data() + used_;
    used_ += n;
    return to;
  }

 private:
  std::int64_t n_channels_ = 0, capacity_ = 0, first_ = 0, used_ = 0;
  Buffer<std::uint8_t> memory_;
};

/// Which of the blocks that a drift filter still gives samples of came at all.
class BlockArrivals {
 public:
  explicit BlockArrivals(std::int64_t block) : block_(block) {}
  void add(bool came) { came_.push_back(came ? 1 : 0); }
  /// Samples [first, end), none of which is asked for again.
  bool any(std::int64_t first, std::int64_t end) {
    for (; first_ < first / block_; ++first_) came_.pop_front();
    const auto n = std::min<std::int64_t>((end - 1) / block_ + 1 - first_, std::ssize(came_));
    return std::find(came_.begin(), came_.begin() + n, std::uint8_t{1}) != came_.begin() + n;
  }

 private:
  std::int64_t block_, first_ = 0;  // of came_
  std::deque<std::uint8_t> came_;
};

}  // namespace ryle::pipeline
