// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "ryle/device/queue.hpp"

namespace ryle {

/// Runs body(slot, task) for all tasks, dealt out one by one; at most one task at a time has a
/// given slot (0 .. n_workers-1), so slots index scratch memory. Captures one pointer:
/// std::function must not allocate in execute().
template <class Body>
void for_each_task(Queue& queue, std::int64_t n_tasks, const Body& body) {
  struct Shared {
    const Body& body;
    std::atomic<std::int64_t> next{0};
    std::int64_t n_tasks;
  } shared{body, {}, n_tasks};
  Shared* const state = &shared;
  const std::int64_t n_slots = std::min<std::int64_t>(queue.n_workers(), n_tasks);
  queue.parallel_for(n_slots, [state](std::int64_t slot) {
    for (;;) {
      const std::int64_t task = state->next.fetch_add(1, std::memory_order_relaxed);
      if (task >= state->n_tasks) return;
      state->body(slot, task);
    }
  });
}

}  // namespace ryle
