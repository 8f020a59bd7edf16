// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ryle/engine/grid/grid.hpp"
#include "ryle/io/base/row_file.hpp"
#include "ryle/io/image/cube_writer.hpp"
#include "ryle/pipeline/grid/grid_input.hpp"
#include "ryle/pipeline/grid/grid_sums.hpp"

/// What a run has summed so far, in a file: others go on from it or add it to theirs.
namespace ryle::pipeline {

/// What must be the same for sums to be added.
struct GridIdentity {
  std::string cells;     ///< SkyCells::definition()
  std::string function;  ///< of convolution, every number to the last bit
  std::string precision, weights, unit;
  std::int64_t n_cells = 0, n_channels = 0;  ///< channels of the files, not of a part
  FrequencyAxis frequency;
  bool lobes = false;
  std::string polarizations;  ///< of several gridded together; else empty
};
/// Empty when equal, else what differs: "the convolution functions differ (A and B)".
std::string difference(const GridIdentity& a, const GridIdentity& b);
/// Function and precision of a gridder.
void describe(const grid::Config& config, GridIdentity& identity);

struct ConsumedBlock {
  std::string source;  ///< GridInput::fingerprint()
  std::string name;    ///< of the file, for messages
  std::int64_t first = 0, n = 0;
  std::string content;  ///< of the file alone, whatever was chosen from it; empty: not known
  std::string polarization, rows;  ///< what of it was chosen: --pol as found, --select
  bool overlaps(const ConsumedBlock& b) const {
    return source == b.source && first < b.first + b.n && b.first < first + n;
  }
};

/// Samples and values that do not count, over all blocks of some channels.
struct GridTally {
  std::int64_t n_samples = 0, bad_positions = 0, out_of_reach = 0, n_candidates = 0;
  grid::AbsentCounts absent;
  void add(const GridTally& t);  ///< other samples
};

/// Channels (as in the files) and the blocks summed into them.
struct GridPart {
  ChannelRange channels;
  std::vector<ConsumedBlock> blocks;
  GridTally tally;
  /// A block both have; nullptr: none.
  const ConsumedBlock* overlap(const std::vector<ConsumedBlock>& others) const;
};

/// What a run was to add to its file of sums.
struct GridRunPlan {
  std::string set;  ///< the same for all shards of one run
  std::int64_t shard = 1, n_shards = 1;
  ChannelRange channels, all_channels;  ///< of this shard; of all of them
  std::vector<ConsumedBlock> blocks;    ///< of this shard
  bool same_as(const GridRunPlan& r) const { return set == r.set && shard == r.shard; }
};
/// Those of both, each once.
std::vector<GridRunPlan> joined(std::vector<GridRunPlan> a, const std::vector<GridRunPlan>& b);
/// Samples of runs that no part has, in words: a run that ended early.
std::vector<std::string> unfinished(const std::vector<GridRunPlan>& runs,
                                    const std::vector<GridPart>& parts);
/// Throws ConfigError where two runs chose samples of one file in two ways (data sets, flags,
/// gains) that count twice. Two polarizations, rows of two values of one column and other channels
/// are different samples.
void require_chosen_once(const std::vector<GridRunPlan>& runs);
/// Shards that none of the runs is, in words.
std::vector<std::string> absent_shards(const std::vector<GridRunPlan>& runs);

/// What the products say and sums do not depend on.
struct GridNotes {
  MapMetadata map;  ///< of all channels of the files
  std::string kernel, implementation;
  std::string beam;  ///< GridSummary::beam
  std::vector<GridRunPlan> runs;
};

/// Channels of the k-th of n shards, from 1; all where there are fewer than shards: those share the
/// samples.
ChannelRange shard_channels(ChannelRange all, std::int64_t shard, std::int64_t n_shards);

/// The file holds sums of a gridder, damaged or not.
bool is_grid_state(const std::string& path);

class GridStateFile {
 public:
  /// Throws FormatError when it is no file of sums or damaged.
  explicit GridStateFile(const std::string& path);
  const std::string& path() const { return file_.path(); }
  const GridIdentity& identity() const { return identity_; }
  const GridNotes& notes() const { return notes_; }
  const std::vector<GridPart>& parts() const { return parts_; }
  /// Channels of a part; [first, last) must lie within.
  GridSums load(std::size_t part, ChannelRange channels) const;

 private:
  friend class GridStateWriter;
  RowFileReader file_;
  GridIdentity identity_;
  GridNotes notes_;
  std::vector<GridPart> parts_;
};

/// One file made whole and then renamed: a kill leaves the one before.
class GridStateWriter {
 public:
  GridStateWriter(const std::string& path, GridIdentity identity, GridNotes notes);
  void add(const GridPart& part, const GridSums& sums);
  void add(const GridStateFile& from, std::size_t part);
  void publish();

 private:
  RowFileWriter file_;
  GridIdentity identity_;
  GridNotes notes_;
  std::vector<GridPart> parts_;
};

}  // namespace ryle::pipeline
