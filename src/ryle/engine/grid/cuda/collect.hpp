// SPDX-License-Identifier: BSD-3-Clause
// What a device summed, on its way into Sums. Private to the engine.
#pragma once
#include <mutex>
#include <vector>

#include "ryle/engine/grid/cuda/tiles.hpp"

namespace ryle::grid::detail {

/// Sums of some channels over all samples of a plan.
struct GroupSums {
  std::int64_t first_channel = 0;
  int n_channels = 0;
  const double* weighted = nullptr;         ///< [channel][cell]
  const double* moments = nullptr;          ///< [weight, square, magnitude, count][cell]
  const std::uint32_t* complete = nullptr;  ///< [tile] bit c: nothing of channel c is absent there
  /// [slab of kOwnChannels][weight, square, magnitude, count][kOwnChannels][cell], right in tiles
  /// where something is absent; nullptr where nothing is.
  const double* own = nullptr;
};
/// Some channel lacks something somewhere.
bool is_partial(const std::uint32_t* complete, std::int64_t n_tiles);

/// Appends the cells of the tiles that were reached, a range a row of a tile.
void add_cells(const WarpTiling& tiling, const std::vector<bool>& reached,
               std::vector<CellRange>& cells);
/// Ascending, none twice, neighbours in one.
std::vector<CellRange> joined(std::vector<CellRange> cells);

/// Takes the groups of one execute() in any order, from any thread, then adds them: cells where a
/// value was absent get moments of their own in every channel.
class SumsCollector {
 public:
  /// @param whole the tiles hold every cell; else no other cell is touched, so that others may
  /// collect those meanwhile
  SumsCollector(Sums& sums, const WarpTiling& tiling, bool whole = true)
      : sums_(sums), tiling_(tiling), whole_(whole) {}
  void add(Queue& queue, const GroupSums& group);
  /// One collector of the same sums at a time.
  void finish(Queue& queue);

 private:
  struct Kept {
    std::int64_t first_channel;
    int n_channels;
    std::vector<std::uint32_t> complete;
    std::vector<Moments> own;  ///< [channel][cell], empty: nothing absent
  };
  Sums& sums_;
  const WarpTiling& tiling_;
  bool whole_;
  std::mutex mutex_;
  LargeVector<Moments> shared_;  ///< [cell]
  std::vector<Kept> groups_;

  void add_weighted(Queue& queue, const GroupSums& group);
};

}  // namespace ryle::grid::detail
