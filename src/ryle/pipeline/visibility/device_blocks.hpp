// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/core/blocks.hpp"
#include "ryle/device/buffer.hpp"
#include "ryle/device/event.hpp"
#include "ryle/device/queue.hpp"

namespace ryle::pipeline {

/// The blocks of a gulp where engines read them, brought to each device once, by the first node
/// that asks; the others of the gulp find them there. Not thread safe: nodes take turns on one
/// thread.
class DeviceBlocks {
 public:
  /// A new gulp: blocks that span whole channels in host memory, which stay until the next
  /// renew(). @pre no queue reads the blocks before any more
  void renew(const ConstBlockView& host);
  /// They are on the device of this queue, too, at `data`, and what was to write them is done.
  void provide(const Queue& queue, const std::byte* data);
  /// The blocks for the engines of this queue: what it is given from now on finds them there. The
  /// host's own for a CPU queue.
  ConstBlockView on(Queue& queue);

  /// Bytes that crossed the bus so far.
  std::int64_t copied_bytes() const { return copied_bytes_; }

 private:
  struct Slot {
    Queue queue;  // that copies
    Event copied;
    Buffer<std::byte> memory;
    const std::byte* data = nullptr;  // of this gulp, once it is there
  };
  Slot& slot_of(const Queue& queue);

  ConstBlockView host_;
  std::vector<Slot> slots_;  // one a device
  std::int64_t copied_bytes_ = 0;
};

}  // namespace ryle::pipeline
