// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "ryle/pipeline/grid/grid_scans.hpp"
#include "ryle/pipeline/grid/grid_state.hpp"

namespace ryle::pipeline {

/// The file of sums of a run: what it goes on from and leaves behind. The gridding thread writes
/// it, whole and then renamed, so that a kill leaves the one before.
class GridCheckpoint {
 public:
  /// Throws ConfigError when the file holds sums of something else, or is a checkpoint of a run
  /// that nobody asked to resume.
  GridCheckpoint(const GridOptions& options, GridIdentity identity, GridNotes notes);
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// Of the file, and this one.
  const std::vector<GridRunPlan>& runs() const { return notes_.runs; }
  /// Samples that runs of the file, this one among them, were to add and have not.
  std::vector<std::string> unfinished_runs() const;
  void set_implementation(const std::string& name);
  /// Parts of the file among these channels, ascending. Throws ConfigError for one half within.
  std::vector<ChannelRange> parts_within(ChannelRange channels) const;
  const GridPart* find(ChannelRange channels) const;
  GridSums load(ChannelRange channels) const;
  /// True when a resumed run need not grid the block again; throws ConfigError when a run that adds
  /// would add it twice.
  bool has(ChannelRange channels, const ConsumedBlock& block) const;
  /// Writes the file when the interval is over.
  void offer(const GridPart& part, const GridSums& sums);
  /// Writes the file.
  void save(const GridPart& part, const GridSums& sums);
  void remove();
  const std::string& path() const { return path_; }

 private:
  std::size_t index(ChannelRange channels) const;  ///< of the part; parts().size(): none
  std::string path_;
  bool resume_;
  double interval_s_;
  GridIdentity identity_;
  GridNotes notes_;
  std::optional<GridStateFile> file_;
  std::vector<std::string> warnings_;
  std::size_t saved_blocks_ = 0;
  ChannelRange saved_{-1, -1};
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace ryle::pipeline
