// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/lap_feeder.hpp"

#include <utility>

#include "ryle/core/error.hpp"

namespace ryle::simulate::detail {

LapFeeder::LapFeeder(std::int64_t lap_samples, Tick start_tick, Draw draw)
    : lap_(lap_samples), start_tick_(start_tick), draw_(std::move(draw)) {
  RYLE_ASSERT(start_tick % lap_samples == 0);
  thread_ = std::thread([this] { run(); });
}

LapFeeder::~LapFeeder() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::int64_t LapFeeder::drawn() const {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  return drawn_;
}

void LapFeeder::sent(std::int64_t samples) {
  {
    const std::lock_guard lock(mutex_);
    sent_ = samples;
  }
  wake_.notify_all();
}

void LapFeeder::run() {
  try {
    for (std::int64_t lap = 0;; ++lap) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stopping_ || sent_ >= (lap - kLaps + 1) * lap_; });
        if (stopping_) return;
      }
      const Tick first = start_tick_ + lap * lap_;
      draw_(first, first / lap_ % kLaps);
      drawn_ = (lap + 1) * lap_;
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
  }
}

void feed_laps(SendLoop& loop, std::int64_t lap_samples, Tick start_tick, LapFeeder::Draw draw) {
  auto feeder = std::make_shared<LapFeeder>(lap_samples, start_tick, std::move(draw));
  loop.schedule.drawn = [feeder] { return feeder->drawn(); };
  loop.schedule.sent = [feeder](std::int64_t samples) { feeder->sent(samples); };
}

}  // namespace ryle::simulate::detail
