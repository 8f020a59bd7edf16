// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

namespace ryle::simt {

/// Work that a thread hands to the copy or tensor unit in groups, and waits for: done as early as
/// it may be, at once, or as late, when its group is waited for. A launch draws which (simt.hpp),
/// so that under some seed what is read too early or overwritten too soon goes wrong.
class Async {
 public:
  void begin(bool late) {
    late_ = late;
    groups_.assign(1, {});
  }
  void add(std::function<void()> work) {
    if (late_) {
      groups_.back().push_back(std::move(work));
    } else {
      work();
    }
  }
  void commit() { groups_.emplace_back(); }
  /// Returns when all but the last `pending` groups are done.
  void wait(std::size_t pending) {
    while (groups_.size() > pending + 1) {
      for (const auto& work : groups_.front()) work();
      groups_.pop_front();
    }
  }

 private:
  bool late_ = false;
  std::deque<std::vector<std::function<void()>>> groups_;  // the last one is open
};

}  // namespace ryle::simt
