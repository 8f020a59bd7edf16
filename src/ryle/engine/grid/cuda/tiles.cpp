// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/cuda/tiles.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ryle/engine/grid/tiles.hpp"

namespace ryle::grid::detail {
namespace {

constexpr std::int64_t kTileWidth = 8, kTileHeight = 4;
constexpr double kMaxSupports = 2;  // of a tile's radius

class WarpTileMaker {
 public:
  WarpTileMaker(const Cells& cells, double chord) : cells_(cells) { tiling_.chord = chord; }

  void add_rectangle(std::int64_t x0, std::int64_t x1, std::int64_t y0, std::int64_t y1) {
    std::vector<std::int64_t> list;
    for (std::int64_t y = y0; y < y1; ++y)
      for (std::int64_t x = x0; x < x1; ++x) list.push_back(y * cells_.width + x);
    if (list.empty() || add(list)) return;
    const std::int64_t xm = (x0 + x1 + 1) / 2, ym = (y0 + y1 + 1) / 2;
    add_rectangle(x0, xm, y0, ym);
    add_rectangle(xm, x1, y0, ym);
    add_rectangle(x0, xm, ym, y1);
    add_rectangle(xm, x1, ym, y1);
  }
  void add_list(std::int64_t begin, std::int64_t end) {
    std::vector<std::int64_t> list;
    for (std::int64_t i = begin; i < end; ++i) list.push_back(i);
    if (list.empty() || add(list)) return;
    const std::int64_t middle = (begin + end) / 2;
    add_list(begin, middle);
    add_list(middle, end);
  }
  WarpTiling take() { return std::move(tiling_); }

 private:
  Vector direction(std::int64_t cell) const {
    const auto i = static_cast<std::size_t>(cell);
    return {cells_.directions.x[i], cells_.directions.y[i], cells_.directions.z[i]};
  }

  // False: too wide, and it can be split.
  bool add(std::vector<std::int64_t> list) {
    const bool splits = list.size() > 1;
    std::erase_if(list, [&](std::int64_t cell) { return std::isnan(direction(cell)[0]); });
    if (list.empty()) return true;
    WarpTile tile{};
    if (!place(list, tile) && splits) return false;
    tiling_.tiles.push_back(tile);
    for (std::size_t lane = 0; lane < kWarp; ++lane) {
      const bool live = lane < list.size();
      const Vector d = direction(live ? list[lane] : list[0]);
      tiling_.cells.push_back(live ? list[lane] : -1);
      tiling_.x.push_back(d[0]);
      tiling_.y.push_back(d[1]);
      tiling_.z.push_back(d[2]);
    }
    return true;
  }

  bool place(const std::vector<std::int64_t>& list, WarpTile& tile) const {
    Vector sum{};
    for (const std::int64_t cell : list)
      for (std::size_t a = 0; a < 3; ++a) sum[a] += direction(cell)[a];
    const double norm = std::sqrt(sum[0] * sum[0] + sum[1] * sum[1] + sum[2] * sum[2]);
    const bool around = norm < 1e-6;  // cells on opposite sides of the sphere
    const Vector c =
        around ? direction(list[0]) : Vector{sum[0] / norm, sum[1] / norm, sum[2] / norm};
    const double across = std::hypot(c[0], c[1]);
    const Vector e = across < 1e-12 ? Vector{1, 0, 0} : Vector{-c[1] / across, c[0] / across, 0};
    const Vector n = {c[1] * e[2] - c[2] * e[1], c[2] * e[0] - c[0] * e[2],
                      c[0] * e[1] - c[1] * e[0]};
    std::copy(c.begin(), c.end(), tile.center);
    std::copy(e.begin(), e.end(), tile.east);
    std::copy(n.begin(), n.end(), tile.north);
    double radius2 = 0;
    tile.x_min = tile.y_min = 2;
    tile.x_max = tile.y_max = -2;
    for (const std::int64_t cell : list) {
      const Vector p = direction(cell);
      double d2 = 0, x = 0, y = 0;
      for (std::size_t a = 0; a < 3; ++a) {
        d2 += (p[a] - c[a]) * (p[a] - c[a]);
        x += (p[a] - c[a]) * e[a];
        y += (p[a] - c[a]) * n[a];
      }
      radius2 = std::max(radius2, d2);
      tile.x_min = std::min(tile.x_min, x);
      tile.x_max = std::max(tile.x_max, x);
      tile.y_min = std::min(tile.y_min, y);
      tile.y_max = std::max(tile.y_max, y);
    }
    const double chord = tiling_.chord, radius = std::sqrt(radius2);
    tile.reach = (radius + chord) * (1 + 1e-12);
    const double band = std::max(8e-6, 2e-6 * (radius + chord) / chord) * chord * chord;
    tile.inner = static_cast<float>(chord * chord - band);
    tile.outer = static_cast<float>(chord * chord + band);
    return !around && radius <= kMaxSupports * chord;
  }

  const Cells& cells_;
  WarpTiling tiling_;
};

}  // namespace

namespace {

// How many ranges are open after each key, for keys that are few beside the ranges: no sort.
std::vector<KeyRange> union_by_counting(const std::vector<KeyRange>& ranges, std::uint32_t first,
                                        std::uint32_t span) {
  std::vector<std::int32_t> opened(std::size_t{span} + 1);
  for (const KeyRange& r : ranges) {
    if (r.begin == r.end) continue;
    ++opened[r.begin - first];
    --opened[r.end - first];
  }
  std::vector<KeyRange> all;
  std::int32_t open = 0;
  for (std::uint32_t k = 0; k <= span; ++k) {
    const std::int32_t before = open;
    open += opened[k];
    if (before == 0 && open > 0) all.push_back({first + k, first + span});
    if (before > 0 && open == 0) all.back().end = first + k;
  }
  return all;
}

}  // namespace

std::vector<KeyRange> union_of(std::vector<KeyRange> ranges) {
  if (ranges.empty()) return {};
  std::uint32_t first = ranges.front().begin, last = ranges.front().end;
  for (const KeyRange& r : ranges) {
    first = std::min(first, r.begin);
    last = std::max(last, r.end);
  }
  if (last - first < 8 * ranges.size()) return union_by_counting(ranges, first, last - first);
  std::sort(ranges.begin(), ranges.end(),
            [](const KeyRange& a, const KeyRange& b) { return a.begin < b.begin; });
  std::vector<KeyRange> all;
  for (const KeyRange& r : ranges) {
    if (all.empty() || r.begin > all.back().end)
      all.push_back(r);
    else
      all.back().end = std::max(all.back().end, r.end);
  }
  return all;
}

namespace {

// Of rows of tiles [first, last), or runs of kWarp cells of a list.
WarpTiling some_tiles(const Cells& cells, double chord, std::int64_t first, std::int64_t last) {
  WarpTileMaker maker(cells, chord);
  const std::int64_t n = cells.directions.size();
  for (std::int64_t row = first; row < last; ++row) {
    if (cells.width == 0) {
      maker.add_list(row * kWarp, std::min(n, (row + 1) * kWarp));
      continue;
    }
    const std::int64_t height = n / cells.width, y = row * kTileHeight;
    for (std::int64_t x = 0; x < cells.width; x += kTileWidth)
      maker.add_rectangle(x, std::min(cells.width, x + kTileWidth), y,
                          std::min(height, y + kTileHeight));
  }
  return maker.take();
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// Parts of the map by all cores, one behind the other.
WarpTiling all_tiles(const Cells& cells, double chord) {
  const std::int64_t n = cells.directions.size(),
                     together = cells.width > 0 ? cells.width * kTileHeight : kWarp,
                     n_rows = (n + together - 1) / together;
  constexpr std::int64_t kCellsOfPart = 32'768;
  const std::int64_t n_parts = std::clamp<std::int64_t>(n / kCellsOfPart, 1, 32);
  if (n_parts == 1) return some_tiles(cells, chord, 0, n_rows);
  std::vector<WarpTiling> parts(n_parts);
  Queue::cpu().parallel_for(n_parts, [&](std::int64_t p) {
    parts[p] = some_tiles(cells, chord, n_rows * p / n_parts, n_rows * (p + 1) / n_parts);
  });
  WarpTiling all = std::move(parts.front());
  std::size_t n_tiles = all.tiles.size();
  for (const WarpTiling& part : parts) n_tiles += part.tiles.size();
  all.tiles.reserve(n_tiles);
  all.cells.reserve(n_tiles * kWarp);
  for (auto* v : {&all.x, &all.y, &all.z}) v->reserve(n_tiles * kWarp);
  for (std::size_t p = 1; p < parts.size(); ++p) {
    append(all.tiles, parts[p].tiles);
    append(all.cells, parts[p].cells);
    append(all.x, parts[p].x);
    append(all.y, parts[p].y);
    append(all.z, parts[p].z);
  }
  return all;
}

}  // namespace

WarpTiling make_warp_tiles(const Cells& cells, const Convolution& convolution) {
  WarpTiling tiling = all_tiles(cells, support_chord(convolution));
  double reach = 0;
  for (const WarpTile& t : tiling.tiles) reach += t.reach;
  reach /= std::max<double>(1, static_cast<double>(tiling.tiles.size()));
  constexpr double kFaceWidth_rad = 1.5707963267948966;
  while (tiling.order < kMaxOrder &&
         kFaceWidth_rad / static_cast<double>(1 << tiling.order) > 0.25 * reach)
    ++tiling.order;
  return tiling;
}

WarpTiling share_of(const WarpTiling& all, std::int64_t share, std::int64_t n_shares) {
  constexpr std::int64_t kRun = 64;
  WarpTiling some{all.chord, all.order, {}, {}, {}, {}, {}};
  const auto n = static_cast<std::int64_t>(all.tiles.size());
  for (std::int64_t run = share; run * kRun < n; run += n_shares) {
    const std::int64_t begin = run * kRun, end = std::min(n, (run + 1) * kRun);
    some.tiles.insert(some.tiles.end(), all.tiles.begin() + begin, all.tiles.begin() + end);
    const auto copy = [&](auto& to, const auto& from) {
      to.insert(to.end(), from.begin() + begin * kWarp, from.begin() + end * kWarp);
    };
    copy(some.cells, all.cells);
    copy(some.x, all.x);
    copy(some.y, all.y);
    copy(some.z, all.z);
  }
  return some;
}

}  // namespace ryle::grid::detail
