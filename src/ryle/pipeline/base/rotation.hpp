// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>

#include "ryle/telescope/observation.hpp"

namespace ryle::pipeline {

/// When a run begins new files (products.md 5): on integration boundaries, so that the files of a
/// run, one after the other, are the run. An integration belongs where its first sample lies:
/// segment k of files covers [start + k S, start + (k + 1) S), start being that of the run or of
/// the sender's last restart; a size limit only adds boundaries.
class Rotation {
 public:
  Rotation(double segment_s, double segment_mib);

  bool on() const { return segment_ns_ > 0 || segment_bytes_ > 0; }
  /// What the files of one format grow to at most, by size or by time; 0 when it is off.
  std::int64_t segment_bytes(const VisibilityDump& dump) const;
  /// True when this dump must open new files. @pre begin() was called
  bool due(const VisibilityDump& dump) const;
  /// This dump is the first of new files; and of a run, or after a restart: boundaries count from
  /// it.
  void begin(const VisibilityDump& dump, bool new_origin);
  void add(const VisibilityDump& dump);

  std::int64_t dumps() const { return dumps_; }
  std::int64_t start_tai_ns() const { return start_tai_ns_; }
  std::int64_t end_tai_ns() const { return end_tai_ns_; }

  /// Bytes one dump takes in the largest of the formats (UVFITS: value and weight in float32, and
  /// the parameters of each baseline).
  static std::int64_t dump_bytes(const VisibilityDump& dump);
  static std::int64_t dump_bytes(std::int64_t n_baselines, std::int64_t n_pol_products,
                                 std::int64_t n_channels);

 private:
  std::int64_t index_of(const VisibilityDump& dump) const;

  std::int64_t segment_ns_ = 0;
  std::int64_t segment_bytes_ = 0;
  std::int64_t origin_tai_ns_ = 0;
  std::int64_t index_ = 0;  // of the open files, from the origin
  std::int64_t start_tai_ns_ = 0;
  std::int64_t end_tai_ns_ = 0;
  std::int64_t dumps_ = 0;
  std::int64_t bytes_ = 0;
};

/// "_20260101T000000.000Z_s0001": names of segments in order of time sort as text.
std::string segment_suffix(std::int64_t start_tai_ns, std::int64_t number);

}  // namespace ryle::pipeline
