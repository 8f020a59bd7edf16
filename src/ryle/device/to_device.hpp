// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <vector>

#include "ryle/device/buffer.hpp"
#include "ryle/device/queue.hpp"

namespace ryle {

/// A table of a plan in memory of the queue's device, there when this returns.
/// @shape [values.size()]
template <class T>
Buffer<T> to_device(Queue& queue, const std::vector<T>& values) {
  Buffer<T> buffer(static_cast<std::int64_t>(values.size()), MemorySpace::device);
  if (values.empty()) return buffer;
  copy_bytes(queue, buffer.data(), values.data(), buffer.bytes());
  queue.synchronize();
  return buffer;
}

}  // namespace ryle
