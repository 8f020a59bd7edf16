// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/image/cuda_all_sky_host.hpp"

/// Private to the CUDA imager, plain C++: tables of the fused E-field kernel (grids of 128 cells).
/// A thread block makes the even or the odd columns of the image: the transform of a row to columns
/// of one parity h is one of 64 points,
/// @eq X[2c + h] = sum_{j<64} (x[j] + (-1)^h x[j + 64]) exp(2 pi i j h / 128) exp(2 pi i j c / 64)
/// so columns 64 and more of the aperture's box are folded when the antennas are laid on the grid:
/// a tile is a sum of visits that were not folded plus (odd columns: minus) one of those that were.
/// Each of the two blocks of a channel lays half of the tiles on the grids of both.
namespace ryle::image::detail {

inline constexpr int kFusedPixels = 128;
inline constexpr int kFusedColumns = kFusedPixels / 2;
inline constexpr int kFusedWarps = 16;      ///< of a thread block
inline constexpr int kFusedUnroll = 4;      ///< visits a warp makes at a time
inline constexpr int kFusedPitch = 66;      ///< row to row of the kernel's grid, in complex numbers
inline constexpr int kFusedExchange = 288;  ///< of four rows or columns a warp transforms

/// A tile of 8 x 8 cells and the antennas that touch it: visits [begin, begin + count), the last
/// n_folded of them folded an odd number of times. Both kinds are filled up to multiples of
/// kFusedUnroll by visits without weight.
struct FusedTile {
  static constexpr std::uint8_t kNone = 0xff;  ///< row of an entry that fills up the list
  std::uint16_t begin = 0, count = 0, n_folded = 0;
  std::uint8_t tile_x = 0, tile_y = kNone;
};

/// A half is the share of a thread block.
struct FusedTables {
  bool fits = false;       ///< the fused kernel can run
  int n_rows = 0;          ///< of the box, a multiple of 8 from 32 on, all channels
  int n_tile_columns = 0;  ///< tiles beside each other that hold the box: 4, 6 or 8
  int n_tiles = 0;         ///< entries in the list of a half, a multiple of kFusedWarps
  int n_visits = 0;        ///< largest of any half
  int n_antennas = 0;
  int first_column[2]{};             ///< c of the first column above the horizon, by parity
  int n_columns = 0;                 ///< columns a block makes
  std::vector<FusedTile> tiles;      ///< [channel][half][n_tiles], as warps take them; both list
                                     ///< the tiles without visits
  std::vector<std::uint16_t> slots;  ///< [channel][half][a][4] visits of the antenna, 0xffff = none
  std::vector<float> weights;        ///< [channel][half][n_visits][8 columns, 8 rows]
};

/// Dynamic shared memory the kernel needs for these tables.
std::int64_t fused_shared_bytes(const FusedTables& tables);
FusedTables fused_tables(const AllSkyConfig& config, const ArrayOfUsed& array,
                         const std::vector<double>& positions, std::int64_t max_shared_bytes);

}  // namespace ryle::image::detail
