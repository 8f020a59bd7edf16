// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <utility>

namespace ryle {

/// Page-locks memory that its owner made, until the end: copies between it and CUDA devices run at
/// the speed of the link, beside other work. Of huge pages that were written before, this takes a
/// twentieth of what allocating page-locked memory takes. Where it cannot be done, or there is no
/// CUDA, the memory stays as it is: copies work, slower.
class PageLock {
 public:
  PageLock() = default;
  /// On the device that is current (OnDevice).
  PageLock(void* memory, std::int64_t n_bytes);
  ~PageLock() { release(); }
  PageLock(PageLock&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}
  PageLock& operator=(PageLock&& other) noexcept {
    if (this != &other) {
      release();
      memory_ = std::exchange(other.memory_, nullptr);
    }
    return *this;
  }
  bool held() const { return memory_ != nullptr; }

 private:
  void release() noexcept;
  void* memory_ = nullptr;
};

}  // namespace ryle
