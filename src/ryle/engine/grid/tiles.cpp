// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/tiles.hpp"

#include <algorithm>
#include <cmath>

namespace ryle::grid::detail {
namespace {

constexpr std::int64_t kSide = 16;

Vector direction(const Positions& p, std::int64_t i) {
  const auto k = static_cast<std::size_t>(i);
  return {p.x[k], p.y[k], p.z[k]};
}
double dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
Vector minus(const Vector& a, const Vector& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
Vector scaled(const Vector& a, double s) { return {a[0] * s, a[1] * s, a[2] * s}; }
double length(const Vector& a) { return std::sqrt(dot(a, a)); }

// A list of blocks of cells becomes a tile, or says that it is too wide.
class TileMaker {
 public:
  TileMaker(const Cells& cells, double chord) : cells_(cells), chord_(chord) {}

  bool add(const std::vector<std::int64_t>& blocks, bool smallest) {
    std::vector<std::int64_t> kept;  // without blocks that are off the sky
    Vector sum{};
    for (std::size_t b = 0; b < blocks.size(); b += kBlockCells) {
      std::array<std::int64_t, kBlockCells> block{};
      bool any = false;
      for (int q = 0; q < kBlockCells; ++q) {
        std::int64_t cell = blocks[b + static_cast<std::size_t>(q)];
        if (cell >= 0 && std::isnan(cells_.directions.x[cell])) cell = -1;
        block[q] = cell;
        if (cell < 0) continue;
        any = true;
        const Vector c = direction(cells_.directions, cell);
        for (int a = 0; a < 3; ++a) sum[a] += c[a];
      }
      if (any) kept.insert(kept.end(), block.begin(), block.end());
    }
    if (kept.empty()) return true;
    Tile tile;
    if (!place(tile, kept, sum, smallest)) return false;
    tile.first_block = static_cast<std::int64_t>(tiling_.cells.size()) / kBlockCells;
    tile.n_blocks = static_cast<std::int64_t>(kept.size()) / kBlockCells;
    tiling_.max_blocks = std::max(tiling_.max_blocks, tile.n_blocks);
    tiling_.tiles.push_back(tile);
    tiling_.cells.insert(tiling_.cells.end(), kept.begin(), kept.end());
    return true;
  }
  Tiling take() { return std::move(tiling_); }

 private:
  bool place(Tile& tile, const std::vector<std::int64_t>& kept, const Vector& sum,
             bool smallest) const {
    const double norm = length(sum);
    if (norm < 1e-6 && !smallest) return false;
    tile.center = norm < 1e-6 ? direction(cells_.directions, kept[0]) : scaled(sum, 1 / norm);
    const double across = std::hypot(tile.center[0], tile.center[1]);
    tile.east = across < 1e-12 ? Vector{1, 0, 0}
                               : Vector{-tile.center[1] / across, tile.center[0] / across, 0};
    const Vector& t = tile.center;
    const Vector& e = tile.east;
    tile.north = {t[1] * e[2] - t[2] * e[1], t[2] * e[0] - t[0] * e[2], t[0] * e[1] - t[1] * e[0]};
    double radius = 0;
    tile.x_min = tile.y_min = 2;
    tile.x_max = tile.y_max = -2;
    for (const std::int64_t cell : kept) {
      if (cell < 0) continue;
      const Vector d = minus(direction(cells_.directions, cell), tile.center);
      radius = std::max(radius, length(d));
      const double x = dot(d, tile.east), y = dot(d, tile.north);
      tile.x_min = std::min(tile.x_min, x);
      tile.x_max = std::max(tile.x_max, x);
      tile.y_min = std::min(tile.y_min, y);
      tile.y_max = std::max(tile.y_max, y);
    }
    // A hair more: rounding must not lose a sample at the edge, which is decided later, exactly.
    tile.reach = (radius + chord_) * (1 + 1e-12);
    return smallest || radius <= kMaxRadii * chord_;
  }

  const Cells& cells_;
  double chord_;
  Tiling tiling_;
};

// A rectangle of the map in blocks of 2 x 2; too wide: its quarters, down to single cells.
void add_rectangle(TileMaker& maker, std::int64_t width, std::int64_t height, std::int64_t x0,
                   std::int64_t y0, std::int64_t side) {
  const std::int64_t x1 = std::min(width, x0 + side), y1 = std::min(height, y0 + side);
  if (x0 >= x1 || y0 >= y1) return;
  std::vector<std::int64_t> blocks;
  for (std::int64_t y = y0; y < y1; y += 2)
    for (std::int64_t x = x0; x < x1; x += 2)
      for (int q = 0; q < kBlockCells; ++q) {
        const std::int64_t i = x + q % 2, j = y + q / 2;
        blocks.push_back(i < x1 && j < y1 ? j * width + i : -1);
      }
  if (maker.add(blocks, side == 1)) return;
  const std::int64_t half = side / 2;
  for (int q = 0; q < 4; ++q)
    add_rectangle(maker, width, height, x0 + q % 2 * half, y0 + q / 2 * half, half);
}

void add_range(TileMaker& maker, std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> blocks;
  for (std::int64_t i = begin; i < end; ++i) blocks.push_back(i);
  while (blocks.size() % kBlockCells != 0) blocks.push_back(-1);
  if (maker.add(blocks, end - begin == 1)) return;
  const std::int64_t middle = begin + (end - begin) / 2;
  add_range(maker, begin, middle);
  add_range(maker, middle, end);
}

}  // namespace

double support_chord(const Convolution& convolution) {
  return 2 * std::sin(0.5 * convolution.support_rad);
}

Tiling make_tiles(const Cells& cells, double chord) {
  TileMaker maker(cells, chord);
  const std::int64_t n = cells.directions.size();
  if (cells.width > 0) {
    const std::int64_t height = n / cells.width;
    for (std::int64_t y = 0; y < height; y += kSide)
      for (std::int64_t x = 0; x < cells.width; x += kSide)
        add_rectangle(maker, cells.width, height, x, y, kSide);
  } else {
    constexpr std::int64_t kList = kSide * kSide;
    for (std::int64_t i = 0; i < n; i += kList) add_range(maker, i, std::min(n, i + kList));
  }
  return maker.take();
}

}  // namespace ryle::grid::detail
