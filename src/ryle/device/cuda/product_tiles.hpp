// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/device/cuda/host_device.hpp"

/// Order in which the tensor-core correlator keeps its int32 sums: that of its registers, so that
/// it writes and another kernel reads them without a pass that sorts. Shared by the engines that
/// hand sums over on the device.
namespace ryle::cuda {

/// Tiles of kTile x kTile inputs on and below the diagonal, tile {column, row} at row (row + 1) / 2
/// + column; inside a tile row = input j, column = input i, V_ij = <v_i conj(v_j)>.
struct ProductTiles {
  static constexpr int kTile = 64;
  static constexpr int kWarpRows = 64;
  static constexpr int kWarpColumns = 32;
  static constexpr int kWarpsAcross = kTile / kWarpColumns;
  static constexpr int kThreads = 32 * (kTile / kWarpRows) * kWarpsAcross;
  static constexpr int kSumsPerThread = kWarpRows * kWarpColumns * 2 / 32;
  static constexpr int kImaginary = kThreads;  ///< Im lies this far behind Re
  static constexpr std::int64_t kSumsPerTile = std::int64_t{kSumsPerThread} * kThreads;

  static constexpr std::int64_t n_tiles(std::int64_t n_inputs) {
    const std::int64_t n = (n_inputs + kTile - 1) / kTile;
    return n * (n + 1) / 2;
  }
  /// Index of Re of (row j, column i) inside a tile.
  RYLE_HOST_DEVICE static constexpr int within(int row, int column) {
    const int warp = row / kWarpRows * kWarpsAcross + column / kWarpColumns;
    const int lane = row % 8 * 4 + column % 8 / 2;
    const int m = row % kWarpRows / 16;
    const int n = column % kWarpColumns / 8;
    const int r = row % 16 / 8 * 2 + column % 2;
    return ((m * 4 + n) * 4 + r) * 2 * kThreads + warp * 32 + lane;
  }
  /// Index of Re of V_ij, i <= j, in the tiles of one channel.
  RYLE_HOST_DEVICE static constexpr std::int64_t index(int i, int j) {
    const std::int64_t row = j / kTile;
    const std::int64_t tile = row * (row + 1) / 2 + i / kTile;
    return tile * kSumsPerTile + within(j % kTile, i % kTile);
  }
};

}  // namespace ryle::cuda
