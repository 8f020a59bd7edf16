// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <span>
#include <vector>

/// Private to the CUDA imager, plain C++: which footprints touch which tile of the cyclic grid.
/// Lists are made once per plan and in a fixed order, so that sums are the same every time.
namespace ryle::image::detail {

inline constexpr int kTileCells = 8;        ///< cells along an edge of a tile
inline constexpr int kMaxTaps = 17;         ///< widest footprint: correlated functions of 9 cells
inline constexpr unsigned kIndexBits = 21;  ///< most footprints a list can name: 2^21
inline constexpr unsigned kOffsetBits = 5;  ///< offsets -16 .. 15 of a footprint from its tile
inline constexpr int kOffsetBias = 16;

/// Entry of a list: footprint, and where its first cell lies from the first cell of the tile.
constexpr std::uint32_t pack_entry(std::uint32_t index, int offset_x, int offset_y) {
  return index | static_cast<std::uint32_t>(offset_x + kOffsetBias) << kIndexBits |
         static_cast<std::uint32_t>(offset_y + kOffsetBias) << (kIndexBits + kOffsetBits);
}

/// First cells of a footprint; taken modulo the grid.
struct Footprint {
  std::int32_t first_x = 0;
  std::int32_t first_y = 0;
};

/// One tile that something touches: entries [begin, end).
struct TileWork {
  std::int32_t channel = 0;
  std::int16_t tile_x = 0;
  std::int16_t tile_y = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

struct TileLists {
  std::vector<TileWork> work;  ///< busiest tile of a channel first
  std::vector<std::uint32_t> entries;
};

/// Lists of one channel: footprints of n_taps x n_taps cells on a cyclic grid of n_pixels.
TileLists tile_lists(std::span<const Footprint> footprints, int n_taps, int n_pixels, int channel);
/// Appends `more` to `lists`. Throws ConfigError when positions no longer fit 32 bits.
void append(TileLists& lists, const TileLists& more);

}  // namespace ryle::image::detail
