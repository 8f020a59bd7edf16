// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/engine/correlate/cuda/wgmma_layout.hpp"

/// Work of the Hopper correlator for two rows of tiles by three warpgroups
/// (cuda/wgmma_s8_three_consumers.cu): half h of a channel is tile {h, h} on the diagonal, by the
/// first two warpgroups as ever, and rows 64 h .. 64 h + 63 of the tile below it by the third. Sums
/// lie where Layout says.
namespace ryle::correlate::wgmma {

inline constexpr int kThreeWarpgroups = 3;

/// Two slots are brought of every block: the 128 inputs of the half's own group, and of the other
/// group what the third warpgroup needs.
RYLE_HOST_DEVICE constexpr int first_own_input(int half) { return half * kTile; }
RYLE_HOST_DEVICE constexpr int first_other_input(int half) { return (1 - half) * kTile; }
/// Half 0 needs 64 rows, half 1 all columns.
RYLE_HOST_DEVICE constexpr int n_other_inputs(int half) { return half == 0 ? kGroupRows : kTile; }

struct ThreeTask {
  Tile tile;
  int warpgroup;       ///< whose rows of the tile these are: 0 or 1
  bool rows_other;     ///< rows come from the other slot
  bool columns_other;  ///< columns do
};

RYLE_HOST_DEVICE constexpr ThreeTask three_task(int half, int warpgroup) {
  if (warpgroup < kWarpgroups) return {{half, half}, warpgroup, false, false};
  return {{1, 0}, half, half == 0, half == 1};
}

/// Number of a tile among all.
RYLE_HOST_DEVICE constexpr std::int64_t id_of(const Layout& l, int channel, const Tile& tile) {
  return std::int64_t{channel} * l.n_tiles + tile.row * (tile.row + 1) / 2 + tile.column;
}

}  // namespace ryle::correlate::wgmma
