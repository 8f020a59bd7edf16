// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "ryle/device/buffer.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/engine/image/cost_model.hpp"

/// Times of runs on cores whose speed changes under way: every run stands between two looks at the
/// speed of the cores, so that a time can be compared with a prediction for another speed.
namespace ryle::bench {

/// Looks at the speed of all workers of a queue at once: multiply-adds in registers, a stream from
/// beyond the caches and a small X-engine, half a millisecond together.
class CoreSpeedProbe {
 public:
  explicit CoreSpeedProbe(Queue& queue);
  ~CoreSpeedProbe();
  /// Mean of the workers.
  image::CoreSpeed measure();
  int n_workers() const { return queue_.n_workers(); }

 private:
  class Products;
  Queue& queue_;
  Buffer<std::uint64_t> memory_;
  std::vector<std::unique_ptr<Products>> products_;  // [worker]
  std::int64_t next_ = 0;
};

/// A run, or a part of one, and the mean of the speeds before and after it.
struct RunAtSpeed {
  double seconds = 0;  ///< that the cores worked on it: without those that other programs had them
  image::CoreSpeed speed;
  double moved = 0;  ///< share by which the speed that is watched changed meanwhile
  double wall_s = 0;
  double core_share = 1;  ///< of the time that the workers had their cores
};
/// The whole of several parts, weighted by their seconds: the mean of their speeds, and how far off
/// that mean may be when each part is as uncertain as its speed moved, independently.
RunAtSpeed joined(const std::vector<RunAtSpeed>& parts);

/// Runs that count and those that do not.
struct TimedAtSpeed {
  std::vector<RunAtSpeed> kept;  ///< in the order of their seconds times their speed
  int n_dropped = 0;             ///< the speed moved by more than kMaxMoved
  double median_s() const;       ///< by the wall clock
  double min_s() const;
  /// The run that a quarter of the others beats at equal speed: what disturbs a run lengthens it,
  /// what disturbs a look at the speed shortens the best.
  /// @pre not empty()
  const RunAtSpeed& typical() const { return kept[kept.size() / 4]; }
  bool empty() const { return kept.empty(); }
};
inline constexpr double kMaxMoved = 0.1;

/// Takes from `seconds` what other programs had the cores for, by core_share: of one worker as it
/// is, of several compared with the run that had most.
void count_own_time(std::vector<RunAtSpeed>& runs, int n_workers);
/// The choice that time_at_speed makes among runs.
TimedAtSpeed steady_runs(const std::vector<RunAtSpeed>& runs);
/// A part of a run and the speed that must not move: of sums, or of the X-engine as well.
struct TimedPart {
  std::function<void()> body;
  bool x_engine = false;
};
/// Repeats `parts` one after the other, a look at the speed between any two, for `seconds` and
/// until five runs count; after four times as many seconds five runs of any kind are enough.
TimedAtSpeed time_at_speed(CoreSpeedProbe& probe, double seconds,
                           const std::vector<TimedPart>& parts);

}  // namespace ryle::bench
