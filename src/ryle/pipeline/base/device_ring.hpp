// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "ryle/device/buffer.hpp"
#include "ryle/device/queue.hpp"

namespace ryle::pipeline {

/// The two queues of a DeviceRing: one that copies, one that works, with an event per slot for the
/// end of either. A test puts queues here that do things as late as they may.
class RingQueues {
 public:
  virtual ~RingQueues() = default;
  /// On the copying queue: host memory, or the end of another slot, into a slot.
  virtual void copy(std::byte* to, const std::byte* from, std::int64_t n_bytes) = 0;
  virtual void record_copied(int slot) = 0;
  virtual void record_worked(int slot) = 0;
  /// What the working queue is given from now on waits until the slot has been copied.
  virtual void work_after_copied(int slot) = 0;
  /// What the copying queue is given from now on waits until the slot has been worked on.
  virtual void copy_after_worked(int slot) = 0;
  /// The host waits.
  virtual void wait_copied(int slot) = 0;
};

/// A copying queue beside `work` on the same device. On the CPU both do things at once.
/// @param piece_bytes 0: a chunk is one copy; else at most so much is, and what the engines bring
/// for their work goes between
std::unique_ptr<RingQueues> make_ring_queues(const Queue& work, int n_slots,
                                             std::int64_t piece_bytes = 0);

/// Chunks of samples on their way into a device, each brought once while chunks before it are
/// worked on, behind what the filters still need of the chunk before. Bounded; not thread safe: one
/// stage thread owns it.
class DeviceRing {
 public:
  /// @param carry_bytes of the samples before a chunk that its work reads, too
  DeviceRing(std::unique_ptr<RingQueues> queues, int n_slots, std::int64_t chunk_bytes,
             std::int64_t carry_bytes, MemorySpace space);

  /// All slots hold chunks that were not released.
  bool full() const { return n_pushed_ - n_released_ == n_slots_; }
  bool empty() const { return n_pushed_ == n_released_; }
  /// Begins to copy a chunk of at most chunk_bytes, to follow the one before. The memory is read
  /// until wait_copied() returns. @pre !full()
  void push(const void* chunk, std::int64_t n_bytes);
  /// The oldest chunk that was not released, with what was carried before it. What the working
  /// queue is given from now on finds it there. @pre !empty()
  struct Chunk {
    const std::byte* data = nullptr;
    std::int64_t carried_bytes = 0;  ///< less than carry_bytes only after the start or restart()
    std::int64_t chunk_bytes = 0;
  };
  Chunk front();
  /// The work on front() has been given to the working queue.
  void release();
  /// Returns when at most the last `in_flight` chunks pushed may still be read, none by default.
  /// @pre in_flight < n_slots
  void wait_copied(int in_flight = 0);
  /// The next chunk does not follow the one before.
  void restart() { follows_ = false; }

  std::int64_t bytes() const { return memory_.bytes(); }

 private:
  int slot_of(std::int64_t chunk) const { return static_cast<int>(chunk % n_slots_); }
  std::byte* memory_of(std::int64_t chunk) const {
    return memory_.data() + slot_of(chunk) * slot_bytes_;
  }

  std::unique_ptr<RingQueues> queues_;
  int n_slots_;
  std::int64_t chunk_bytes_;
  std::int64_t carry_bytes_;
  std::int64_t slot_bytes_;
  Buffer<std::byte> memory_;  // [slot][carried, at its end | chunk]
  std::vector<std::int64_t> carried_;
  std::vector<std::int64_t> brought_;
  bool follows_ = false;
  std::int64_t n_pushed_ = 0;
  std::int64_t n_released_ = 0;
};

}  // namespace ryle::pipeline
