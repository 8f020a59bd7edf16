// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Device helpers shared by the correlator kernels.
namespace ryle::correlate::detail {

/// Tile {column, row} with column <= row of triangular index t: row (row + 1) / 2 + column. The
/// root is only a guess in fp32, the two loops make it exact for any t below 2^31.
struct TileIndex {
  int column;
  int row;
};
__device__ inline TileIndex tile_of(int t) {
  int row = static_cast<int>((sqrtf(8.0f * static_cast<float>(t) + 1.0f) - 1.0f) * 0.5f);
  while (static_cast<long long>(row) * (row + 1) / 2 > t) --row;
  while (static_cast<long long>(row + 1) * (row + 2) / 2 <= t) ++row;
  return {t - static_cast<int>(static_cast<long long>(row) * (row + 1) / 2), row};
}

}  // namespace ryle::correlate::detail
