// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>

namespace ryle::pipeline {

/// What a run made of its beams.
struct BeamSummary {
  std::int64_t beams = 0;       ///< coherent
  std::int64_t incoherent = 0;  ///< sums without phases
  std::int64_t samples = 0;     ///< of power, per beam and channel
  double sample_interval_s = 0;
  std::int64_t weight_updates = 0;
  std::int64_t masked_inputs = 0;    ///< bad in the layout, or gain 0 or not finite
  double absent_fraction = 0;        ///< of (sample, channel): nothing arrived
  std::int64_t filled_samples = 0;   ///< written as the mean: lost chunks, full queues
  std::int64_t dropped_samples = 0;  ///< of them those the disk did not keep up with
  std::int64_t heaps_sent = 0, heaps_dropped = 0;  ///< of each stream of beams.spead
  std::int64_t datagrams_rejected = 0;             ///< of all, by the network
  std::int64_t clamped_low = 0, clamped_high = 0;  ///< codes of 8-bit filterbanks
};
/// One JSON object.
std::string to_json(const BeamSummary& summary);
/// Lines for people.
std::string to_text(const BeamSummary& summary);

}  // namespace ryle::pipeline
