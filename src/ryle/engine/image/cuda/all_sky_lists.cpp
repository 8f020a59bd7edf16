// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cuda/all_sky_lists.hpp"

#include <algorithm>

#include "ryle/core/error.hpp"

namespace ryle::image::detail {
namespace {

/// Where a footprint meets a tile, along one axis.
struct ListTouch {
  int tile;
  int offset;
};

// A footprint that crosses the edge of the grid comes back at the other side with the same taps.
void touches(int first, int n_taps, int n_pixels, std::vector<ListTouch>& out) {
  out.clear();
  const int start = ((first % n_pixels) + n_pixels) % n_pixels;
  for (int base = start; base + n_taps > 0; base -= n_pixels) {
    const int from = std::max(base, 0);
    const int to = std::min(base + n_taps, n_pixels) - 1;
    for (int tile = from / kTileCells; tile <= to / kTileCells && from <= to; ++tile) {
      out.push_back({tile, base - tile * kTileCells});
    }
  }
}

}  // namespace

TileLists tile_lists(std::span<const Footprint> footprints, int n_taps, int n_pixels, int channel) {
  if (footprints.size() > (std::size_t{1} << kIndexBits)) {
    throw UnsupportedError("cuda imager: " + std::to_string(footprints.size()) +
                           " baselines; its lists hold 2^21: use the implementation cpu");
  }
  const int across = (n_pixels + kTileCells - 1) / kTileCells;
  std::vector<std::uint32_t> count(across * across);
  std::vector<ListTouch> x, y;
  const auto each = [&](auto&& body) {
    for (std::size_t f = 0; f < footprints.size(); ++f) {
      touches(footprints[f].first_x, n_taps, n_pixels, x);
      touches(footprints[f].first_y, n_taps, n_pixels, y);
      for (const ListTouch& b : y) {
        for (const ListTouch& a : x) {
          const auto tile = static_cast<std::size_t>(b.tile * across + a.tile);
          body(tile, pack_entry(static_cast<std::uint32_t>(f), a.offset, b.offset));
        }
      }
    }
  };
  each([&](std::size_t tile, std::uint32_t) { ++count[tile]; });
  TileLists lists;
  for (int tile = 0; tile < across * across; ++tile) {
    if (count[tile] == 0) continue;
    lists.work.push_back({channel, static_cast<std::int16_t>(tile % across),
                          static_cast<std::int16_t>(tile / across), 0, count[tile]});
  }
  std::stable_sort(lists.work.begin(), lists.work.end(),
                   [](const TileWork& a, const TileWork& b) { return a.end > b.end; });
  std::uint32_t next = 0;
  for (TileWork& work : lists.work) {
    const std::uint32_t n = work.end;
    work.begin = next;
    count[work.tile_y * across + work.tile_x] = next;
    next += n;
    work.end = next;
  }
  lists.entries.resize(next);
  each([&](std::size_t tile, std::uint32_t entry) { lists.entries[count[tile]++] = entry; });
  return lists;
}

void append(TileLists& lists, const TileLists& more) {
  const auto offset = static_cast<std::uint64_t>(lists.entries.size());
  if (offset + more.entries.size() > 0xffffffffu) {
    throw ConfigError(
        "cuda imager: more than 2^32 pairs of a baseline and a tile; "
        "image fewer channels at a time");
  }
  for (TileWork work : more.work) {
    work.begin += static_cast<std::uint32_t>(offset);
    work.end += static_cast<std::uint32_t>(offset);
    lists.work.push_back(work);
  }
  lists.entries.insert(lists.entries.end(), more.entries.begin(), more.entries.end());
}

}  // namespace ryle::image::detail
