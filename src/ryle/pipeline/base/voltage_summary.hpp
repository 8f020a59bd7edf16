// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>

namespace ryle::pipeline {

/// What a run wrote of its voltages (voltage_ring.hpp).
struct VoltageSummary {
  double ring_s = 0;
  std::int64_t triggers = 0;  ///< = dumps asked for + merged + rejected + limited + dropped
  std::int64_t merged = 0, rejected = 0;
  std::int64_t unlisted = 0;         ///< of the merged those that their dump does not list
  std::int64_t limited = 0;          ///< by voltages.per_minute, max_gib
  std::int64_t dropped = 0;          ///< the disk did not keep up
  std::int64_t dumps = 0;            ///< on disk
  std::int64_t partial = 0;          ///< of them those whose beginning had left the ring
  std::int64_t failed = 0;           ///< lost while they were written
  std::int64_t absent_packets = 0;   ///< of those on disk (DumpRecord)
  std::int64_t chunks_given_up = 0;  ///< while all of the ring waited for the disk
  std::int64_t bytes = 0;
};
/// One JSON object.
std::string to_json(const VoltageSummary& summary);
/// A line for people.
std::string to_text(const VoltageSummary& summary);

}  // namespace ryle::pipeline
