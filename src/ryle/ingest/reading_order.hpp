// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

namespace ryle {

/// Which of the sockets that have data waiting are read in this round: the furthest behind and
/// those at most `limit` ahead of it. However long the thread slept, no stream then runs out of the
/// window while another has data to be read.
class ReadingOrder {
 public:
  explicit ReadingOrder(std::int64_t limit) : limit_(limit) {}
  /// A socket that holds others back. One whose last read brought nothing of ours must not: a flood
  /// of strangers never advances it.
  void waiting(std::int64_t position) { lowest_ = std::min(lowest_, position); }
  bool may_read(std::int64_t position) const {
    return position <= lowest_ || position - lowest_ <= limit_;
  }

 private:
  std::int64_t limit_;
  std::int64_t lowest_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace ryle
