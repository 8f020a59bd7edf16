// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/device_blocks.hpp"

#include <algorithm>

#include "ryle/core/error.hpp"
#include "ryle/device/on_device.hpp"

namespace ryle::pipeline {

void DeviceBlocks::renew(const ConstBlockView& host) {
  host_ = host;
  for (Slot& slot : slots_) slot.data = nullptr;
}

DeviceBlocks::Slot& DeviceBlocks::slot_of(const Queue& queue) {
  const auto found = std::find_if(slots_.begin(), slots_.end(),
                                  [&](const Slot& slot) { return same_memory(slot.queue, queue); });
  if (found != slots_.end()) return *found;
  return slots_.emplace_back(Slot{queue, Event(queue), {}, nullptr});
}

void DeviceBlocks::provide(const Queue& queue, const std::byte* data) {
  slot_of(queue).data = data;
}

ConstBlockView DeviceBlocks::on(Queue& queue) {
  RYLE_ASSERT(host_.data != nullptr);
  if (queue.back_end() == BackEnd::cpu) return host_;
  Slot& slot = slot_of(queue);
  if (slot.data == nullptr) {
    // A device keeps the strides: a view of blocks ends with the last of its last channel.
    const std::int64_t bytes = (host_.n_channels - 1) * host_.channel_stride_bytes +
                               host_.n_blocks * host_.block_stride_bytes;
    if (slot.memory.size() < bytes) {
      const OnDevice scope(queue);
      slot.memory = Buffer<std::byte>(bytes, MemorySpace::device);
    }
    copy_bytes(queue, slot.memory.data(), host_.data, bytes);
    slot.copied.record(queue);
    slot.data = slot.memory.data();
    copied_bytes_ += bytes;
  } else if (slot.data == slot.memory.data()) {
    slot.copied.wait_event(queue);
  }
  ConstBlockView blocks = host_;
  blocks.data = slot.data;
  return blocks;
}

}  // namespace ryle::pipeline
