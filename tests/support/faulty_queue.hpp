// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "ryle/device/back_end.hpp"

namespace ryle::test {

/// A CPU queue that fails as a device does: the work is done, and some check() or synchronize()
/// later says that what was in flight is lost, and so does every one after it.
class FaultyQueue final : public Queue::Impl {
 public:
  /// @param n_good looks at the queue that find nothing
  explicit FaultyQueue(int n_good) : cpu_(Queue::cpu(1)), n_good_(n_good) {}
  static Queue make(int n_good) { return Queue(std::make_shared<FaultyQueue>(n_good)); }

  BackEnd back_end() const override { return BackEnd::cpu; }
  void synchronize() override { look(); }
  void check() override { look(); }
  void parallel_for(std::int64_t n, const std::function<void(std::int64_t)>& body) override {
    cpu_.parallel_for(n, body);
  }
  void copy(void* to, const void* from, std::int64_t n_bytes) override {
    copy_bytes(cpu_, to, from, n_bytes);
  }

 private:
  void look() {
    if (n_good_-- <= 0) {
      n_good_ = 0;
      throw DeviceError("work on the queue failed: planted; work in flight is lost", true);
    }
  }
  Queue cpu_;
  int n_good_;
};

}  // namespace ryle::test
