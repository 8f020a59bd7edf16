// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/device_blocks.hpp"

#include <algorithm>

#include "ryle/core/error.hpp"
#include "ryle/device/on_device.hpp"

namespace ryle::pipeline {

void DeviceBlocks::renew(const ConstBlockView& host) {
  host_ = host;
  for (Place& place : places_) place.data = nullptr;
}

DeviceBlocks::Place& DeviceBlocks::place_of(const Queue& queue) {
  const auto found = std::find_if(places_.begin(), places_.end(), [&](const Place& place) {
    return same_memory(place.queue, queue);
  });
  if (found != places_.end()) return *found;
  return places_.emplace_back(Place{queue, Event(queue), {}, nullptr});
}

void DeviceBlocks::provide(const Queue& queue, const std::byte* data) {
  place_of(queue).data = data;
}

ConstBlockView DeviceBlocks::on(Queue& queue) {
  RYLE_ASSERT(host_.data != nullptr);
  if (queue.back_end() == BackEnd::cpu) return host_;
  Place& place = place_of(queue);
  if (place.data == nullptr) {
    // A device keeps the strides: a view of blocks ends with the last of its last channel.
    const std::int64_t bytes = (host_.n_channels - 1) * host_.channel_stride_bytes +
                               host_.n_blocks * host_.block_stride_bytes;
    if (place.memory.size() < bytes) {
      const OnDevice scope(queue);
      place.memory = Buffer<std::byte>(bytes, MemorySpace::device);
    }
    copy_bytes(queue, place.memory.data(), host_.data, bytes);
    place.copied.record(queue);
    place.data = place.memory.data();
    copied_bytes_ += bytes;
  } else if (place.data == place.memory.data()) {
    place.copied.wait_event(queue);
  }
  ConstBlockView blocks = host_;
  blocks.data = place.data;
  return blocks;
}

}  // namespace ryle::pipeline
