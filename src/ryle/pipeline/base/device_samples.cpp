// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/base/device_samples.hpp"

#include <algorithm>

#include "ryle/core/error.hpp"
#include "ryle/device/on_device.hpp"
#include "ryle/engine/channelize/transpose.hpp"

namespace ryle::pipeline {
namespace {

MemorySpace space_of(const Queue& queue) {
  return queue.back_end() == BackEnd::cuda ? MemorySpace::device : MemorySpace::host;
}

DeviceSamples::Setup whole_groups_of(DeviceSamples::Setup s) {
  constexpr std::int64_t kGroup = DeviceSamples::kGroupTicks;
  if (s.chunk_ticks <= 0 || s.chunk_ticks % kGroup != 0)
    throw ConfigError("stream: chunks have whole groups of 64 ticks");
  s.history_ticks = (s.history_ticks + kGroup - 1) / kGroup * kGroup;
  return s;
}

DeviceRing ring_on(const Queue& queue, const DeviceSamples::Setup& s) {
  const OnDevice scope(queue);
  const std::int64_t bits = s.layout.sample_stride_bits;
  auto queues =
      s.ring_queues ? s.ring_queues(queue, s.n_slots) : make_ring_queues(queue, s.n_slots);
  return DeviceRing(std::move(queues), s.n_slots, s.chunk_ticks * bits / 8,
                    s.history_ticks * bits / 8, space_of(queue));
}

}  // namespace

DeviceSamples::DeviceSamples(const Queue& queue, const Setup& setup)
    : queue_(queue), setup_(whole_groups_of(setup)), ring_(ring_on(queue_, setup_)) {
  if (queue_.back_end() != BackEnd::cuda && !setup_.always_transposed) return;
  turned_ = channelize::transposed_layout(setup_.layout, setup_.n_inputs,
                                          setup_.history_ticks + setup_.chunk_ticks);
  if (!turned_) return;
  const OnDevice scope(queue_);
  // Room past the end: engines may load whole words.
  constexpr std::int64_t kSlackBytes = 128;
  rows_ = Buffer<std::byte>(channelize::transposed_bytes(*turned_, setup_.n_inputs) + kSlackBytes,
                            space_of(queue_));
}

void DeviceSamples::push(const void* samples, std::int64_t n_ticks) {
  ring_.push(samples, bytes_of(n_ticks));
  n_ticks_.push_back(n_ticks);
}

DeviceSamples::Stretch DeviceSamples::front() {
  const DeviceRing::Chunk chunk = ring_.front();
  const std::int64_t carried = chunk.carried_bytes / bytes_of(kGroupTicks) * kGroupTicks;
  Stretch s;
  s.n_history = std::min(setup_.history_ticks, carried);
  s.n_ticks = n_ticks_.front();
  s.samples = chunk.data + chunk.carried_bytes - bytes_of(s.n_history);
  if (turned_) {
    channelize::transpose_samples(queue_, s.samples, setup_.layout, setup_.n_inputs,
                                  s.n_history + s.n_ticks, *turned_, rows_.data());
    s.samples = rows_.data();
  }
  return s;
}

void DeviceSamples::release() {
  ring_.release();
  n_ticks_.pop_front();
}

}  // namespace ryle::pipeline
