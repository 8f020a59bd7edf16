// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/core/interrupt.hpp"

#include "ryle/core/error.hpp"

namespace ryle {
namespace {

std::atomic<const std::atomic<int>*> interrupt_count{nullptr};
std::atomic<int> own_stops{0};

}  // namespace

void set_interrupt_count(const std::atomic<int>* signals) noexcept { interrupt_count = signals; }

void require_not_interrupted(const std::string& what) {
  const std::atomic<int>* signals = interrupt_count.load(std::memory_order_relaxed);
  if (signals == nullptr || signals->load(std::memory_order_relaxed) == 0) return;
  if (own_stops.load(std::memory_order_relaxed) > 0) return;
  throw Error(ExitCode::try_again,
              "stopped by a signal while " + what +
                  " was read; nothing was made of it, start the command again");
}

OwnStop::OwnStop() noexcept { ++own_stops; }
OwnStop::~OwnStop() { --own_stops; }

}  // namespace ryle
