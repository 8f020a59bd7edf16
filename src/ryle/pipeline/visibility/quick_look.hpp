// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/device/queue.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/telescope/observation.hpp"

namespace ryle::pipeline {

/// A labelled place on the sky picture: unit vector east, north, up at the start of the data.
struct SourceMark {
  Vector3 enu{};
  std::string label;
};

/// What the pictures of a run are drawn from: the mean of all dumps and the history of the
/// auto-correlations. Bounded memory: the history keeps at most kMaxRows rows, averaging neighbours
/// when full.
class QuickLook {
 public:
  void add(const VisibilityDump& dump);
  /// Mean over all dumps, counts summed.
  VisibilityDump mean() const;

  void draw_matrix(const std::string& path, const Observation& observation, bool overwrite) const;
  void draw_bandpass(const std::string& path, const Observation& observation, bool overwrite) const;
  /// Returns the imager that ran.
  std::string draw_sky(const std::string& path, Queue& queue, const Observation& observation,
                       const ImageConfig& config, const std::vector<SourceMark>& marks,
                       bool overwrite) const;

 private:
  static constexpr std::size_t kMaxRows = 512;
  void halve_history();

  VisibilityDump first_;   // time stamps and shape
  VisibilityDump last_;    // time stamps only
  std::vector<cf64> sum_;  // [channel][baseline][pol_product], counts-weighted
  std::vector<double> weight_;
  std::vector<std::vector<float>> history_;  // [row][channel] mean auto power
  std::vector<std::int64_t> history_dumps_;  // dumps behind each row
  std::int64_t dumps_per_row_ = 1;
};

}  // namespace ryle::pipeline
