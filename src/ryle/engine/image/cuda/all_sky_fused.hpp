// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/image/cuda/all_sky_host.hpp"

/// Private to the CUDA imager, plain C++: tables of the fused E-field kernel (grids of 128 cells).
/// A thread block makes the even or the odd columns of the image: the transform of a row to columns
/// of one parity h is one of 64 points,
/// @eq X[2c + h] = sum_{j<64} (x[j] + (-1)^h x[j + 64]) exp(2 pi i j h / 128) exp(2 pi i j c / 64)
/// so columns 64 and more of the aperture's box are folded when the antennas are laid on the grid:
/// a tile is a sum of visits that were not folded plus (odd columns: minus) one of those that were.
/// Each of the two blocks of a channel lays half of the tiles on the grids of both. Small tiles: an
/// antenna of 7 x 7 cells touches 6.25 tiles of 4 x 4 cells, 2 times its cells, but 3.06 of 8 x 8,
/// 4 times its cells.
namespace ryle::image::detail {

inline constexpr int kFusedPixels = 128;
inline constexpr int kFusedBlocks = 2;  ///< thread blocks of a channel, a cluster
inline constexpr int kFusedColumns = kFusedPixels / kFusedBlocks;
inline constexpr int kFusedWarps = 16;      ///< of a thread block
inline constexpr int kFusedTile = 4;        ///< cells along an edge of a tile
inline constexpr int kFusedUnroll = 4;      ///< rounds of visits a warp makes at a time
inline constexpr int kFusedPitch = 68;      ///< row to row of the kernel's grid, in complex numbers
inline constexpr int kFusedExchange = 270;  ///< of four columns a warp transforms

/// Rows the kernel has room for: columns are transformed in place, which takes 64.
constexpr int fused_grid_rows(int n_rows) { return n_rows < 64 ? 64 : n_rows; }

/// Tiles of 4 x 4 cells stand four abreast, eight lanes of a warp each: a quad. Visits of the four
/// go in rounds, one of each, and rounds in groups of kFusedUnroll: `plain` groups are followed by
/// `folded` ones, of visits folded an odd number of times. Visits without weight fill up.
struct FusedTile {
  static constexpr std::uint32_t kNone = 0xffffffff;
  std::uint32_t group = 0;              ///< first of the quad
  std::uint16_t plain = 0, folded = 0;  ///< of the quad, 0 and 0 end the list of a warp
  std::uint32_t at = kNone;             ///< row * kFusedPitch + column, kNone = no tile
  std::uint32_t unused = 0;
};

/// A share is that of a thread block. Axes are swapped where the aperture is longer from north to
/// south, so that fewer rows are transformed: "columns" and "rows" below are those of the kernel.
struct FusedTables {
  bool fits = false;        ///< the fused kernel can run
  bool transposed = false;  ///< columns of the kernel are rows of the image
  int n_rows = 0;           ///< of the box, all channels: a multiple of 8 from 32 to 96, or 128
  int n_tile_columns = 0;   ///< eights of columns that hold the box: 4, 6 or 8
  int n_quads = 0;          ///< entries in the list of a share, a multiple of kFusedWarps
  int n_empty = 0;          ///< most tiles without visits
  int n_rounds = 0;         ///< of visits, largest of any share
  int n_antennas = 0;
  int first_column[kFusedBlocks]{};  ///< c of the first column a block makes
  int n_groups = 0;                  ///< of four columns a block makes, one a warp
  std::vector<FusedTile> tiles;      ///< [channel][share][n_quads][4], entry k for warp k mod
                                     ///< kFusedWarps
  std::vector<std::uint32_t> empty;  ///< [channel][n_empty] where tiles without visits lie, kNone
  std::vector<std::uint32_t> who;    ///< [channel][share][group][4 tiles][kFusedUnroll]
                                     ///< 16 x antenna, n_antennas = none
  std::vector<float> weights;        ///< [channel][share][round][4 tiles][4 columns, 4 rows]
};

/// Warps of a block that also calibrate: the last ones, some of which have no columns.
inline constexpr int kFusedLoaders = 4;
inline constexpr int kFusedTurns = 32;  ///< of four numbers each, that transforms need

/// Dynamic shared memory the kernel needs for these tables.
std::int64_t fused_shared_bytes(const FusedTables& tables);
FusedTables fused_tables(const AllSkyConfig& config, const ArrayOfUsed& array,
                         const std::vector<double>& positions, std::int64_t max_shared_bytes);

}  // namespace ryle::image::detail
