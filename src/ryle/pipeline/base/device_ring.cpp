// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/base/device_ring.hpp"

#include <algorithm>

#include "ryle/core/error.hpp"
#include "ryle/device/event.hpp"

namespace ryle::pipeline {
namespace {

class TwoQueues final : public RingQueues {
 public:
  TwoQueues(const Queue& work, Queue copying, int n_slots, std::int64_t piece_bytes)
      : work_(work), copying_(std::move(copying)), piece_bytes_(piece_bytes) {
    for (int slot = 0; slot < n_slots; ++slot) {
      copied_.emplace_back(work_);
      worked_.emplace_back(work_);
    }
  }
  void copy(std::byte* to, const std::byte* from, std::int64_t n_bytes) override {
    const std::int64_t piece = piece_bytes_ > 0 ? piece_bytes_ : n_bytes;
    for (std::int64_t at = 0; at < n_bytes; at += piece)
      copy_bytes(copying_, to + at, from + at, std::min(piece, n_bytes - at));
  }
  void record_copied(int slot) override { copied_[index(slot)].record(copying_); }
  void record_worked(int slot) override { worked_[index(slot)].record(work_); }
  void work_after_copied(int slot) override { copied_[index(slot)].wait_event(work_); }
  void copy_after_worked(int slot) override { worked_[index(slot)].wait_event(copying_); }
  void wait_copied(int slot) override { copied_[index(slot)].synchronize(); }

 private:
  static std::size_t index(int slot) { return static_cast<std::size_t>(slot); }
  Queue work_;
  Queue copying_;
  std::int64_t piece_bytes_;
  std::vector<Event> copied_;
  std::vector<Event> worked_;
};

}  // namespace

std::unique_ptr<RingQueues> make_ring_queues(const Queue& work, int n_slots,
                                             std::int64_t piece_bytes) {
  return std::make_unique<TwoQueues>(work, Queue::beside(work), n_slots, piece_bytes);
}

DeviceRing::DeviceRing(std::unique_ptr<RingQueues> queues, int n_slots, std::int64_t chunk_bytes,
                       std::int64_t carry_bytes, MemorySpace space)
    : queues_(std::move(queues)),
      n_slots_(n_slots),
      chunk_bytes_(chunk_bytes),
      // Whole lines, so that chunks begin where an engine may want them.
      carry_bytes_((carry_bytes + 127) / 128 * 128),
      slot_bytes_(carry_bytes_ + (chunk_bytes + 127) / 128 * 128 + 128),
      memory_(checked_product({n_slots, slot_bytes_}, "ring of device chunks"), space),
      carried_(n_slots),
      brought_(n_slots) {
  // A chunk's end is carried from its own slot while the next one fills.
  if (n_slots < 2) throw ConfigError("a ring of device chunks needs at least 2 slots");
}

void DeviceRing::push(const void* chunk, std::int64_t n_bytes) {
  RYLE_ASSERT(!full() && n_bytes <= chunk_bytes_);
  const int slot = slot_of(n_pushed_);
  const auto at = static_cast<std::size_t>(slot);
  std::byte* const to = memory_of(n_pushed_) + carry_bytes_;
  if (n_pushed_ >= n_slots_) queues_->copy_after_worked(slot);
  carried_[at] = 0;
  if (follows_ && carry_bytes_ > 0) {
    const auto before = static_cast<std::size_t>(slot_of(n_pushed_ - 1));
    carried_[at] = std::min(carry_bytes_, carried_[before] + brought_[before]);
    const std::byte* end = memory_of(n_pushed_ - 1) + carry_bytes_ + brought_[before];
    queues_->copy(to - carried_[at], end - carried_[at], carried_[at]);
  }
  queues_->copy(to, static_cast<const std::byte*>(chunk), n_bytes);
  queues_->record_copied(slot);
  brought_[at] = n_bytes;
  follows_ = true;
  ++n_pushed_;
}

DeviceRing::Chunk DeviceRing::front() {
  RYLE_ASSERT(!empty());
  const int slot = slot_of(n_released_);
  const auto at = static_cast<std::size_t>(slot);
  queues_->work_after_copied(slot);
  return {memory_of(n_released_) + carry_bytes_ - carried_[at], carried_[at], brought_[at]};
}

void DeviceRing::release() {
  RYLE_ASSERT(!empty());
  queues_->record_worked(slot_of(n_released_));
  ++n_released_;
}

void DeviceRing::wait_copied(int in_flight) {
  RYLE_ASSERT(in_flight < n_slots_);  // the slot still has the event of that chunk
  const std::int64_t chunk = n_pushed_ - 1 - in_flight;
  if (chunk >= 0) queues_->wait_copied(slot_of(chunk));
}

}  // namespace ryle::pipeline
