// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "ryle/core/time.hpp"
#include "ryle/engine/beamform/weights.hpp"

/// Delay models that a control system sends while data flow: which is in force at which tick.
namespace ryle::beamform {

/// Models [beam][input] from `apply_at` on, until the next table. dt = 0 at `reference`.
struct SteeringTable {
  Tick apply_at = 0;
  Tick reference = 0;
  std::vector<Steering> models;
};

/// Requests come from any thread and never wait for data; the engine's thread asks where sets of
/// weights begin and end, and for the weights themselves.
class SteeringSchedule {
 public:
  /// Weights follow the rates every `update_ticks`, at absolute multiples of it, for the middle of
  /// the interval. The first table is in force from the start.
  SteeringSchedule(const SteeringTable& first, Rational rate_hz, Tick update_ticks);

  /// Puts a table in force at its apply_at, or where the data have come to if that is later;
  /// returns the tick known now to be the earliest possible. A table for the same tick replaces the
  /// one before. Throws ConfigError for another number of models, or ones that are not finite.
  Tick request(SteeringTable table);

  /// The engine's thread: weights are the same over ticks [first, result). Data up to `first` are
  /// done: later requests apply from there at the earliest.
  Tick end_of_run(Tick first);
  /// Makes the weights in force at `first`, a start of a run, if they are others than at the last
  /// call. @return false: unchanged
  bool weights_at(Tick first, const WeightMaker& maker,
                  std::span<const std::int64_t> subarray_of_beam, View<cf32, 3> weights);

  /// Ticks at which tables came into force, in order.
  std::vector<Tick> applied() const;

 private:
  Tick interval_end(Tick first) const;

  mutable std::mutex mutex_;
  std::map<Tick, SteeringTable> tables_;  ///< by the tick they apply from; the first is in force
  std::vector<Tick> applied_;
  Rational rate_hz_;
  Tick update_ticks_;
  Tick done_ = INT64_MIN;
  Tick made_table_ = INT64_MIN, made_interval_ = INT64_MIN;
  std::size_t n_models_;
};

}  // namespace ryle::beamform
