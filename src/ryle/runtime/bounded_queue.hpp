// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "ryle/core/error.hpp"

namespace ryle {

/// What happens to an item offered to a full queue. Every edge of the graph states one (ingest.md
/// 8).
enum class DropPolicy : std::uint8_t {
  block,        ///< the producer waits (files, offline)
  drop_newest,  ///< the offered item is dropped (live edges, science files)
  drop_oldest,  ///< the item at the head is dropped (monitors: latest wins)
};

enum class QueueResult : std::uint8_t { done, dropped, full, closed };

/// Bounded first-in first-out queue between two or more threads. The storage is allocated once.
/// close() lets consumers drain what is queued and wakes every waiter; after it no item is taken
/// in.
template <class T>
class BoundedQueue {
 public:
  using Duration = std::chrono::steady_clock::duration;

  explicit BoundedQueue(std::size_t capacity, DropPolicy policy = DropPolicy::block)
      : slots_(capacity), policy_(policy) {
    RYLE_ASSERT(capacity > 0);
  }
  BoundedQueue(const BoundedQueue&) = delete;
  BoundedQueue& operator=(const BoundedQueue&) = delete;

  /// Hands an item over as the policy says. done: taken (with drop_oldest possibly at the cost of
  /// the head, counted); dropped: not taken, counted; closed: not taken.
  QueueResult offer(T item) {
    std::unique_lock lock(mutex_);
    if (!closed_ && count_ == slots_.size()) {
      if (policy_ == DropPolicy::drop_newest) {
        ++dropped_;
        return QueueResult::dropped;
      }
      if (policy_ == DropPolicy::drop_oldest) {
        take_locked();
        ++dropped_;
      } else {
        not_full_.wait(lock, [this] { return closed_ || count_ < slots_.size(); });
      }
    }
    return put_locked(std::move(item), lock);
  }

  /// Never waits, never drops: `full` leaves the item with the caller.
  QueueResult try_push(T& item) {
    std::unique_lock lock(mutex_);
    if (!closed_ && count_ == slots_.size()) return QueueResult::full;
    return put_locked(std::move(item), lock);
  }

  std::optional<T> try_pop() {
    std::unique_lock lock(mutex_);
    return pop_locked(lock);
  }

  /// Nothing after `timeout`, or at once when the queue is closed and drained.
  std::optional<T> pop_for(Duration timeout) {
    std::unique_lock lock(mutex_);
    // A timed wait is a system call even when the time is up: polling must not pay for it.
    if (timeout > Duration::zero()) {
      not_empty_.wait_for(lock, timeout, [this] { return closed_ || count_ > 0; });
    }
    return pop_locked(lock);
  }

  /// Waits for an item; nothing only when the queue is closed and drained.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [this] { return closed_ || count_ > 0; });
    return pop_locked(lock);
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    not_empty_.notify_all();
    not_full_.notify_all();
  }

  bool closed() const {
    return with_lock([this] { return closed_; });
  }
  /// Closed and nothing left to pop.
  bool finished() const {
    return with_lock([this] { return closed_ && count_ == 0; });
  }
  std::size_t size() const {
    return with_lock([this] { return count_; });
  }
  std::uint64_t dropped() const {
    return with_lock([this] { return dropped_; });
  }
  std::size_t capacity() const { return slots_.size(); }
  DropPolicy policy() const { return policy_; }

 private:
  template <class F>
  auto with_lock(F f) const {
    const std::lock_guard lock(mutex_);
    return f();
  }

  QueueResult put_locked(T item, std::unique_lock<std::mutex>& lock) {
    if (closed_) return QueueResult::closed;
    slots_[(head_ + count_) % slots_.size()] = std::move(item);
    ++count_;
    lock.unlock();
    not_empty_.notify_one();
    return QueueResult::done;
  }

  T take_locked() {
    T item = std::move(*slots_[head_]);
    slots_[head_].reset();
    head_ = (head_ + 1) % slots_.size();
    --count_;
    return item;
  }

  std::optional<T> pop_locked(std::unique_lock<std::mutex>& lock) {
    if (count_ == 0) return std::nullopt;
    std::optional<T> item(take_locked());
    lock.unlock();
    not_full_.notify_one();
    return item;
  }

  mutable std::mutex mutex_;
  std::condition_variable not_empty_, not_full_;
  std::vector<std::optional<T>> slots_;  // a ring; optional, so that T needs no default constructor
  std::size_t head_ = 0, count_ = 0;
  std::uint64_t dropped_ = 0;
  DropPolicy policy_;
  bool closed_ = false;
};

}  // namespace ryle
