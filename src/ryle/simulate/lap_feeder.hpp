// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "ryle/core/time.hpp"
#include "ryle/simulate/send_loop.hpp"

namespace ryle::simulate::detail {

/// Draws samples while a SendLoop sends those before: the packed packets of its links are a ring of
/// kLaps laps, and a lap is drawn into the place of one that every link has left behind. The clock
/// of the sender stands still while it waits for a lap.
/// - Thread: one of its own, which calls draw(). Its error is thrown by drawn(), on the sender's.
class LapFeeder {
 public:
  static constexpr std::int64_t kLaps = 3;
  /// Draws samples [first, first + lap) and packs them at lap `slot` of the links' images.
  using Draw = std::function<void(Tick first, std::int64_t slot)>;

  /// @pre start_tick is the first sample of a lap: laps begin at multiples of their length
  LapFeeder(std::int64_t lap_samples, Tick start_tick, Draw draw);
  ~LapFeeder();
  LapFeeder(const LapFeeder&) = delete;
  LapFeeder& operator=(const LapFeeder&) = delete;

  /// Samples since the start of the schedule that may be sent. Any thread.
  std::int64_t drawn() const;
  /// Every link has sent so much of the schedule.
  void sent(std::int64_t samples);

 private:
  void run();

  const std::int64_t lap_;
  const Tick start_tick_;
  Draw draw_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::int64_t sent_ = 0;
  bool stopping_ = false;
  std::atomic<std::int64_t> drawn_{0};
  std::exception_ptr failure_;
  std::thread thread_;
};

/// Starts a feeder for the links of the loop, whose images have kLaps laps, and keeps it as long as
/// the loop asks.
void feed_laps(SendLoop& loop, std::int64_t lap_samples, Tick start_tick, LapFeeder::Draw draw);

}  // namespace ryle::simulate::detail
