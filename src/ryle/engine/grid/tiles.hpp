// SPDX-License-Identifier: BSD-3-Clause
// Cells in tiles that lie together on the sky. Private to the engine.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "ryle/engine/grid/grid.hpp"

namespace ryle::grid::detail {

using Vector = std::array<double, 3>;

/// Cells of a block share one list of samples.
inline constexpr int kBlockCells = 4;

struct Tile {
  std::int64_t first_block = 0, n_blocks = 0;
  Vector center{}, east{}, north{};  ///< orthonormal; any pair at a pole
  double reach = 0;                  ///< chord within which samples may matter to a cell
  double x_min = 0, x_max = 0, y_min = 0, y_max = 0;  ///< of the cells, along east and north
};

struct Tiling {
  std::vector<Tile> tiles;
  std::vector<std::int64_t> cells;  ///< [block][kBlockCells], -1 = none
  std::int64_t max_blocks = 0;      ///< of a tile
};

/// What float32 can say of theta^2 from the chord ends here (grid.md 4).
inline constexpr double kWidestFloat_rad = 0.4;

/// Throws ConfigError for cells that make no map.
void check_cells(const Cells& cells);

/// Chord of the support radius: a sample is within reach where |s - c| is below it, which is
/// angle < R without the arc sine.
double support_chord(const Convolution& convolution);

/// Tiles of 16 x 16 cells of a map or 256 of a list, split until their radius is at most
/// kMaxRadii supports: positions in a tile are float32 offsets from its center.
inline constexpr double kMaxRadii = 4;
Tiling make_tiles(const Cells& cells, double chord);

}  // namespace ryle::grid::detail
