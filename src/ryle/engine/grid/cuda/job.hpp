// SPDX-License-Identifier: BSD-3-Clause
// What one lane does in a job of the CUDA gridder: a lane is a cell of the tile, samples come in
// batches of kWarp through shared memory (grid.md 5). Private to the engine.
#pragma once
#include <cstdint>

#include "ryle/engine/grid/cuda/chunk.hpp"
#include "ryle/engine/grid/cuda/function.hpp"

namespace ryle::grid::detail {

/// Rows of a job's sums behind those of its channels.
inline constexpr int kMomentRows = 4;
/// Channels whose own moments are made at a time.
inline constexpr int kOwnChannels = 8;

/// A sample seen from the center of a tile. u = 0: it does not count, and lies nowhere near.
template <class Real>
struct alignas(4 * sizeof(Real)) Staged {
  Real x, y, z, u;
};

/// What the cells of a tile span, around which samples may matter.
template <class Real>
struct TileBox {
  Real x_min, x_max, y_min, y_max, reach2;
};

template <class Real>
struct LaneCell {
  Real x, y, z;
  double direction[3];
};

template <class Real, int kChannels>
struct LaneSums {
  Real weighted[kChannels];
  Real weight, square, magnitude;
  std::int32_t count;
};

/// Moments of single channels.
template <class Real>
struct LaneOwn {
  Real weight[kOwnChannels], square[kOwnChannels], magnitude[kOwnChannels];
  std::int32_t count[kOwnChannels];
};

template <class Real>
RYLE_HD inline void offset_in(const WarpTile& tile, const double* p, Real& x, Real& y, Real& z) {
  // Differences in double, then Real: what is lost is a part of the tile's radius.
  const double d[3] = {p[0] - tile.center[0], p[1] - tile.center[1], p[2] - tile.center[2]};
  x = static_cast<Real>(dot(d, tile.east));
  y = static_cast<Real>(dot(d, tile.north));
  z = static_cast<Real>(dot(d, tile.center));
}

template <class Real>
RYLE_HD inline LaneCell<Real> make_cell(const WarpTile& tile, bool live, double x, double y,
                                        double z) {
  LaneCell<Real> cell{-9, -9, -9, {x, y, z}};  // nothing reaches a lane without a cell
  if (live) offset_in(tile, cell.direction, cell.x, cell.y, cell.z);
  return cell;
}

template <class Real>
RYLE_HD inline Staged<Real> nobody() {
  return {9, 9, 9, 0};
}

template <class Real>
RYLE_HD inline TileBox<Real> box_of(const WarpTile& tile) {
  // More than float32 makes of the offsets in it.
  constexpr float kMargin = 1.0001F;
  return {static_cast<Real>(tile.x_min), static_cast<Real>(tile.x_max),
          static_cast<Real>(tile.y_min), static_cast<Real>(tile.y_max),
          static_cast<Real>(tile.outer * kMargin)};
}

/// May the sample be within reach of a cell? Beside the box in the tile's plane it is no farther
/// than the chord is long.
template <class Real>
RYLE_HD inline bool is_near(const TileBox<Real>& box, const Staged<Real>& s) {
  const Real beside = s.x < box.x_min ? box.x_min - s.x : s.x > box.x_max ? s.x - box.x_max : 0;
  const Real above = s.y < box.y_min ? box.y_min - s.y : s.y > box.y_max ? s.y - box.y_max : 0;
  return s.u > 0 && add_product(beside, beside, times(above, above)) <= box.reach2;
}

/// @param weights [place], 0: does not count; nullptr: all 1
template <class Real>
RYLE_HD inline Staged<Real> stage(const WarpTile& tile, const ChunkView& chunk,
                                  const float* weights, std::uint32_t place) {
  const float u = weights == nullptr ? 1.0F : weights[place];
  if (!(u > 0)) return nobody<Real>();
  const double p[3] = {chunk.x[place], chunk.y[place], chunk.z[place]};
  Staged<Real> s;
  offset_in(tile, p, s.x, s.y, s.z);
  s.u = static_cast<Real>(u);
  return s;
}

/// True where the sample is within reach of the cell, with K of the pair; else that is 0.
template <class Real, Weighing kWeighing>
RYLE_HD inline bool reach(const WarpTile& tile, const PairFunction& f, const LaneCell<Real>& cell,
                          const Staged<Real>& s, const ChunkView& chunk, std::uint32_t place,
                          Real& w) {
  const Real dx = s.x - cell.x, dy = s.y - cell.y, dz = s.z - cell.z;
  const Real c2 = squared_length(dx, dy, dz);
  bool in;
  if constexpr (sizeof(Real) == 8) {
    in = c2 < f.chord2;
  } else {
    in = c2 < tile.inner;
    if (!in && c2 < tile.outer) {
      const double ex = chunk.x[place] - cell.direction[0], ey = chunk.y[place] - cell.direction[1],
                   ez = chunk.z[place] - cell.direction[2];
      in = squared_length(ex, ey, ez) < f.chord2;
    }
  }
  if constexpr (kWeighing == Weighing::gauss) {
    const float k = gauss_value(f, static_cast<float>(c2));  // of any pair, without a branch
    w = in ? static_cast<Real>(k) : 0;
    return in;
  }
  w = 0;
  if (!in) return false;
  if constexpr (kWeighing == Weighing::exact) {
    const double p[3] = {chunk.x[place], chunk.y[place], chunk.z[place]};
    const double ex = p[0] - cell.direction[0], ey = p[1] - cell.direction[1],
                 ez = p[2] - cell.direction[2];
    w = static_cast<Real>(exact_value(f, cell.direction, p, sqrt(squared_length(ex, ey, ez))));
  } else {
    w = static_cast<Real>(cubic_value(f, static_cast<float>(c2)));
  }
  return true;
}

/// Adds a sample; one that is not within reach has w = 0 and adds nothing. @param values of its
/// channels, 0 where absent, times their own weights
template <class Real, int kChannels>
RYLE_HD inline void add(LaneSums<Real, kChannels>& sums, bool in, Real w, Real u,
                        const Real* values) {
  const Real wu = times(w, u);
  sums.weight += wu;
  sums.square = add_product(wu, w, sums.square);
  sums.magnitude += wu < 0 ? -wu : wu;
  sums.count += in ? 1 : 0;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int c = 0; c < kChannels; ++c)
    sums.weighted[c] = add_product(wu, values[c], sums.weighted[c]);
}

/// Bits of kOwnChannels channels from `first` on; none beyond the group's width, where weights end.
RYLE_HD inline std::uint32_t slab_of(std::uint32_t valid, int first, int width) {
  const int n = width - first < kOwnChannels ? width - first : kOwnChannels;
  return valid >> first & ((1U << n) - 1);
}

/// The same for the moments of kOwnChannels channels. @param present bit c: channel c is there
/// @param weights of the channels, nullptr: all 1
template <class Real>
RYLE_HD inline void add_own(LaneOwn<Real>& sums, Real w, Real u, std::uint32_t present,
                            const float* weights) {
  const Real wu = times(w, u);
  const Real magnitude = wu < 0 ? -wu : wu;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int c = 0; c < kOwnChannels; ++c) {
    if ((present >> c & 1U) == 0) continue;
    const Real own = weights == nullptr ? Real{1} : static_cast<Real>(weights[c]);
    sums.weight[c] = add_product(wu, own, sums.weight[c]);
    sums.square[c] = add_product(times(wu, own), w, sums.square[c]);
    sums.magnitude[c] = add_product(magnitude, own, sums.magnitude[c]);
    ++sums.count[c];
  }
}

RYLE_HD inline void put(double* to, int row, int lane, double v, bool first) {
  double& sum = to[row * kWarp + lane];
  sum = first ? v : sum + v;
}

/// Short sums go into double. @shape to [channels + kMomentRows][kWarp]
template <class Real, int kChannels>
RYLE_HD inline void flush(LaneSums<Real, kChannels>& sums, double* to, int lane, bool first) {
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int c = 0; c < kChannels; ++c) put(to, c, lane, sums.weighted[c], first);
  put(to, kChannels, lane, sums.weight, first);
  put(to, kChannels + 1, lane, sums.square, first);
  put(to, kChannels + 2, lane, sums.magnitude, first);
  put(to, kChannels + 3, lane, sums.count, first);
  sums = {};
}

/// The last ones of a job, with those flushed before into `totals` unless these are the first.
template <class Real, int kChannels>
RYLE_HD inline void finish_job(const LaneSums<Real, kChannels>& sums, const double* totals,
                               double* to, int lane, bool first) {
  const auto row = [&](int r, double v) {
    const int at = r * kWarp + lane;
    to[at] = first ? v : totals[at] + v;
  };
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int c = 0; c < kChannels; ++c) row(c, sums.weighted[c]);
  row(kChannels, sums.weight);
  row(kChannels + 1, sums.square);
  row(kChannels + 2, sums.magnitude);
  row(kChannels + 3, sums.count);
}

/// @shape to [kMomentRows][kOwnChannels][kWarp]
template <class Real>
RYLE_HD inline void flush(LaneOwn<Real>& sums, double* to, int lane, bool first) {
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int c = 0; c < kOwnChannels; ++c) {
    put(to, c, lane, sums.weight[c], first);
    put(to, kOwnChannels + c, lane, sums.square[c], first);
    put(to, 2 * kOwnChannels + c, lane, sums.magnitude[c], first);
    put(to, 3 * kOwnChannels + c, lane, sums.count[c], first);
  }
  sums = {};
}

/// What jobs [begin, end) of a tile hold of a row and lane, in their order.
RYLE_HD inline double total(const double* partial, std::int64_t n_rows, std::uint32_t begin,
                            std::uint32_t end, int row, int lane) {
  double sum = 0;
  for (std::uint32_t job = begin; job < end; ++job)
    sum += partial[(static_cast<std::int64_t>(job) * n_rows + row) * kWarp + lane];
  return sum;
}

}  // namespace ryle::grid::detail
