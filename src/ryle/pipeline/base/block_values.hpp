// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>

#include "ryle/device/page_lock.hpp"
#include "ryle/engine/grid/large_array.hpp"

namespace ryle::pipeline {

/// Values of a block of samples, in memory that is kept from one block to the next and not set to
/// zero first.
class BlockValues {
 public:
  /// What was held is lost where it grows.
  void resize(std::size_t n) {
    if (n > values_.size()) {
      lock_ = {};
      values_ = {};
      values_.resize(n);
    }
    size_ = n;
  }
  /// For copies to CUDA devices; after it was filled, so that whoever filled it has made its pages.
  void lock_pages() {
    if (!lock_.held() && size_ > 0)
      lock_ = PageLock(values_.data(), static_cast<std::int64_t>(values_.size() * sizeof(float)));
  }
  std::size_t size() const { return size_; }
  float* data() { return values_.data(); }
  const float* data() const { return values_.data(); }
  float& operator[](std::size_t i) { return values_[i]; }

 private:
  grid::LargeVector<float> values_;
  PageLock lock_;  ///< ends before the memory does
  std::size_t size_ = 0;
};

}  // namespace ryle::pipeline
