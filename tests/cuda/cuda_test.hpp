// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "ryle/core/random.hpp"
#include "ryle/device/queue.hpp"

namespace ryle::test {

/// Skips with the reason where CUDA does not work, else gives each test a queue on device 0.
class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = cuda_unavailable_reason();
    if (!reason.empty()) GTEST_SKIP() << "skipped: " << reason;
    queue_.emplace(Queue::cuda());
  }
  Queue& queue() { return *queue_; }

  /// Host bytes copied to the device.
  Buffer<std::byte> upload(const std::vector<std::byte>& bytes) {
    Buffer<std::byte> buffer(static_cast<std::int64_t>(bytes.size()), MemorySpace::device);
    copy_bytes(queue(), buffer.data(), bytes.data(), buffer.bytes());
    queue().synchronize();
    return buffer;
  }
  std::vector<std::byte> download(const Buffer<std::byte>& buffer) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(buffer.size()));
    copy_bytes(queue(), bytes.data(), buffer.data(), buffer.bytes());
    queue().synchronize();
    return bytes;
  }

 private:
  std::optional<Queue> queue_;
};

inline std::vector<std::byte> garbage(std::int64_t n) {
  return std::vector<std::byte>(static_cast<std::size_t>(n), std::byte{0xCD});
}

}  // namespace ryle::test
