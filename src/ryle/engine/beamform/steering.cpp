// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/beamform/steering.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/core/integer.hpp"
#include "ryle/engine/beamform/implementations.hpp"

namespace ryle::beamform {

SteeringSchedule::SteeringSchedule(const SteeringTable& first, Rational rate_hz, Tick update_ticks)
    : rate_hz_(rate_hz), update_ticks_(update_ticks), n_models_(first.models.size()) {
  RYLE_ASSERT(update_ticks > 0);
  request(first);
  applied_.push_back(first.apply_at);
}

Tick SteeringSchedule::request(SteeringTable table) {
  if (table.models.size() != n_models_)
    throw ConfigError("steering: " + std::to_string(table.models.size()) + " delay models; " +
                      std::to_string(n_models_) + " = beams x inputs are wanted");
  for (const Steering& s : table.models) {
    if (!std::isfinite(s.delay_s) || !std::isfinite(s.rate_s_per_s) ||
        !std::isfinite(s.phase_turns))
      throw ConfigError("steering: a delay, rate or phase is not finite");
  }
  const std::lock_guard lock(mutex_);
  const Tick tick = std::max(table.apply_at, done_);
  tables_[tick] = std::move(table);
  return tick;
}

Tick SteeringSchedule::interval_end(Tick first) const {
  return (floor_divide(first, update_ticks_) + 1) * update_ticks_;
}

Tick SteeringSchedule::end_of_run(Tick first) {
  const std::lock_guard lock(mutex_);
  done_ = std::max(done_, first);
  Tick end = interval_end(first);
  const auto next = tables_.upper_bound(first);
  if (next != tables_.end()) end = std::min(end, next->first);
  // What is run now is fixed: a request for a tick inside it comes after it.
  done_ = end;
  return end;
}

// The instant is the middle of the whole update interval, wherever a run begins inside it: weights
// depend on ticks alone, not on gulps.
bool SteeringSchedule::weights_at(Tick first, const WeightMaker& maker,
                                  std::span<const std::int64_t> subarray_of_beam,
                                  View<cf32, 3> weights) {
  const std::lock_guard lock(mutex_);
  auto now = tables_.upper_bound(first);
  if (now != tables_.begin()) --now;
  const Tick table_tick = now->first;
  const Tick interval = floor_divide(first, update_ticks_);
  if (table_tick == made_table_ && interval == made_interval_) return false;
  if (made_table_ != INT64_MIN && table_tick != made_table_) applied_.push_back(table_tick);
  made_table_ = table_tick;
  made_interval_ = interval;
  tables_.erase(tables_.begin(), now);  // history
  const double ticks = static_cast<double>(interval * update_ticks_ - now->second.reference) +
                       0.5 * static_cast<double>(update_ticks_);
#if RYLE_MUTANT == 936
  const double dt_s = 0 * ticks;
#else
  const double dt_s = ticks * static_cast<double>(rate_hz_.den) / static_cast<double>(rate_hz_.num);
#endif
  maker.make(now->second.models, dt_s, subarray_of_beam, weights);
  return true;
}

std::vector<Tick> SteeringSchedule::applied() const {
  const std::lock_guard lock(mutex_);
  return applied_;
}

}  // namespace ryle::beamform
