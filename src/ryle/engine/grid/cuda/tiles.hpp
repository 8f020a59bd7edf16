// SPDX-License-Identifier: BSD-3-Clause
// Cells as the CUDA gridder holds them: 32 that lie together, one for each lane of a warp. Private
// to the engine.
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/grid/cuda/sky_key.hpp"
#include "ryle/engine/grid/grid.hpp"

namespace ryle::grid::detail {

struct WarpTile {
  double center[3], east[3], north[3];  ///< orthonormal with one another; any pair at a pole
  double reach;                         ///< chord within which samples may matter to a cell
  double x_min, x_max, y_min, y_max;    ///< of the cells, along east and north
  /// Squared chords up to which float32 says "in", and from which "out"; in between double decides
  /// (grid.md 4).
  float inner, outer;
};

struct KeyRange {
  std::uint32_t begin, end;
};

/// May a sample in this part of the sphere be within `chord` of a cell of the tile?
RYLE_HD inline bool touches(const WarpTile& tile, const SkyNode& node, double chord) {
  double d2 = 0, e = 0, n = 0;
  for (int i = 0; i < 3; ++i) {
    const double d = node.center[i] - tile.center[i];
    d2 += d * d;
    e += d * tile.east[i];
    n += d * tile.north[i];
  }
  if (d2 > (tile.reach + node.radius) * (tile.reach + node.radius)) return false;
  // A distance in the tile's plane is no longer than the chord.
  const double beside = e < tile.x_min ? tile.x_min - e : e > tile.x_max ? e - tile.x_max : 0;
  const double above = n < tile.y_min ? tile.y_min - n : n > tile.y_max ? n - tile.y_max : 0;
  const double reach = chord * (1 + 1e-9) + 1e-15 + node.radius;
  return beside * beside + above * above <= reach * reach;
}

/// The keys a tile must look at, in ascending ranges: the tree of faces is walked without a stack.
class KeyRanges {
 public:
  RYLE_HD KeyRanges(const WarpTile& tile, double chord, int order)
      : tile_(tile), chord_(chord), order_(order) {}
  /// False after the last one.
  RYLE_HD bool next(KeyRange& range) {
    bool open = false;
    while (level_ > 0 || code_ < kFaces) {
      if (!touches(tile_, sky_node(code_, level_), chord_)) {
        leave();
      } else if (level_ < order_) {
        code_ <<= 2;
        ++level_;
      } else {
        if (open && code_ != range.end) return true;
        if (!open) range.begin = code_;
        range.end = code_ + 1;
        open = true;
        leave();
      }
    }
    return open;
  }

 private:
  RYLE_HD void leave() {
    ++code_;
    while (level_ > 0 && (code_ & 3U) == 0) {
      code_ >>= 2;
      --level_;
    }
  }
  const WarpTile& tile_;
  double chord_;
  int order_;
  std::uint32_t code_ = 0;
  int level_ = 0;
};

struct WarpTiling {
  double chord = 0;  ///< of the support radius
  int order = 0;     ///< of the keys: leaves a quarter of a tile's reach wide
  std::vector<WarpTile> tiles;
  std::vector<std::int64_t> cells;  ///< [tile][kWarp], -1 = none
  std::vector<double> x, y, z;      ///< of `cells`, anything where there is none
};

/// Ascending, apart: every key that is in one of `ranges`.
std::vector<KeyRange> union_of(std::vector<KeyRange> ranges);

/// Blocks of 8 x 4 cells of a map, or 32 neighbours of a list, split while wider than two supports.
WarpTiling make_warp_tiles(const Cells& cells, const Convolution& convolution);

/// Every n_shares-th run of neighbouring tiles, from run `share` on: shares see about as many
/// samples each, wherever those lie.
WarpTiling share_of(const WarpTiling& all, std::int64_t share, std::int64_t n_shares);

}  // namespace ryle::grid::detail
