// SPDX-License-Identifier: BSD-3-Clause
// What kernels of the CUDA gridder are given. Private to the engine.
#pragma once
#include "ryle/engine/grid/cuda/job.hpp"
#include "ryle/engine/grid/cuda/load.hpp"

namespace ryle::grid::detail {

/// Tiles and their cells in device memory.
struct MapView {
  const WarpTile* tiles = nullptr;
  std::int64_t n_tiles = 0;
  const std::int64_t* cells = nullptr;                    ///< [tile][kWarp]
  const double *x = nullptr, *y = nullptr, *z = nullptr;  ///< [tile][kWarp]
  std::int64_t n_cells = 0;
};

/// Values of a group into the order of the chunk. @shape values, own [place][width]
template <class Real>
struct LoadArgs {
  LoadView from;
  const std::uint32_t* row = nullptr;
  Real* values = nullptr;
  float* own = nullptr;                              ///< weights of the channels, or nullptr
  std::uint32_t *valid = nullptr, *plain = nullptr;  ///< [place]
};
template <class Real>
struct GridArgs {
  MapView map;
  ChunkView chunk;
  PairFunction function;
  const float* u = nullptr;      ///< [place], or nullptr: all 1
  const Real* values = nullptr;  ///< [place][width]
  const std::uint32_t* plain = nullptr;
  double* partial = nullptr;          ///< [job][width + kMomentRows][kWarp]
  std::uint32_t* complete = nullptr;  ///< [tile] bits that are not in `plain` are taken away
};
/// Moments of channels [first, first + kOwnChannels) in tiles that are not complete.
template <class Real>
struct OwnArgs {
  MapView map;
  ChunkView chunk;
  PairFunction function;
  const float* u = nullptr;
  const float* own = nullptr;  ///< [place][width], or nullptr
  const std::uint32_t* valid = nullptr;
  const std::uint32_t* complete = nullptr;
  int first = 0, width = 0;
  double* partial = nullptr;  ///< [job][kMomentRows][kOwnChannels][kWarp]
};
/// sums[row][cell] += the jobs of its tile, in their order.
struct ReduceArgs {
  MapView map;
  const std::uint32_t* job_begin = nullptr;  ///< [tile + 1]
  const double* partial = nullptr;           ///< [job][n_rows][kWarp]
  int n_rows = 0;
  const std::uint32_t* complete = nullptr;  ///< complete tiles are left out; nullptr: none is
  double* sums = nullptr;                   ///< [n_rows][cell]
};
/// Planes of a map (Finish), NaN where there is nothing.
struct PlaneArgs {
  std::int64_t n_cells = 0;
  int n_channels = 0;
  const double* weighted = nullptr;  ///< [channel][cell]
  const double* moments = nullptr;   ///< [kMomentRows][cell]
  std::int64_t min_count = 1;
  double min_weight = 0;
  float* values = nullptr;        ///< [channel][cell]
  float* weight = nullptr;        ///< [cell], or nullptr
  std::int32_t* count = nullptr;  ///< [cell], or nullptr
};
/// The same for cells of tiles that are not complete, from the channels' own moments.
struct OwnPlaneArgs {
  MapView map;
  const std::uint32_t* complete = nullptr;
  const double* own = nullptr;  ///< [slab][kMomentRows][kOwnChannels][cell]
  PlaneArgs plane;
};

}  // namespace ryle::grid::detail
