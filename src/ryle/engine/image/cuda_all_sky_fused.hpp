// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/image/cuda_all_sky_host.hpp"

/// Private to the CUDA imager, plain C++: tables of the fused E-field kernel (grids of 128 cells).
/// A thread block makes the even or the odd columns of the image: the transform of a row to columns
/// of one parity h is one of 64 points,
/// @eq X[2c + h] = sum_{j<64} (x[j] + (-1)^h x[j + 64]) exp(2 pi i j h / 128) exp(2 pi i j c / 64)
/// so blocks share no data, and columns 64 and more of the aperture's box are folded, with their
/// sign, when the antennas are laid on the grid.
namespace ryle::image::detail {

inline constexpr int kFusedPixels = 128;
inline constexpr int kFusedColumns = kFusedPixels / 2;

/// A tile of 8 x 8 cells and the antennas that touch it: visits [begin, begin + count).
struct FusedTile {
  std::uint16_t begin = 0, count = 0, tile_x = 0, tile_y = 0;
};

struct FusedTables {
  bool fits = false;  ///< the fused kernel can run
  int n_rows = 0;     ///< of the box, a multiple of 8, all channels
  int n_tiles = 0;    ///< (64 / 8) * (n_rows / 8)
  int n_visits = 0;   ///< largest of any channel
  int n_antennas = 0;
  int first_column[2]{};             ///< c of the first column above the horizon, by parity
  int n_columns = 0;                 ///< columns a block makes
  std::vector<FusedTile> tiles;      ///< [channel][n_tiles], busiest first
  std::vector<std::uint16_t> slots;  ///< [channel][a][4] visits of the antenna, 0xffff = none
  std::vector<float> weights;        ///< [parity][channel][n_visits][8 columns, 8 rows]
};

/// Dynamic shared memory the kernel needs for these tables.
std::int64_t fused_shared_bytes(const FusedTables& tables);
FusedTables fused_tables(const AllSkyConfig& config, const ArrayOfUsed& array,
                         const std::vector<double>& positions, std::int64_t max_shared_bytes);

}  // namespace ryle::image::detail
