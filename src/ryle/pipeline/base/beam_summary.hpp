// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace ryle::pipeline {

/// What a run wrote of its voltages (voltage_ring.hpp).
struct VoltageSummary {
  double ring_s = 0;
  std::int64_t triggers = 0;  ///< = dumps asked for + merged + rejected + limited + dropped
  std::int64_t merged = 0, rejected = 0;
  std::int64_t unlisted = 0;         ///< of the merged those that their dump does not list
  std::int64_t limited = 0;          ///< by voltage_per_minute, voltage_max_gib
  std::int64_t dropped = 0;          ///< the disk did not keep up
  std::int64_t dumps = 0;            ///< on disk
  std::int64_t partial = 0;          ///< of them those whose beginning had left the ring
  std::int64_t failed = 0;           ///< lost while they were written
  std::int64_t absent_packets = 0;   ///< of those on disk
  std::int64_t chunks_given_up = 0;  ///< while all of the ring waited for the disk
  std::int64_t bytes = 0;
};

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
  std::int64_t clamped_low = 0, clamped_high = 0;  ///< codes of 8-bit filterbanks
  std::optional<VoltageSummary> voltages;
};
/// One JSON object.
std::string to_json(const BeamSummary& summary);
/// Lines for people.
std::string to_text(const BeamSummary& summary);

}  // namespace ryle::pipeline
