// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cuda_all_sky_fused.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ryle/engine/image/geometry.hpp"

namespace ryle::image::detail {
namespace {

constexpr int kTiles = kFusedColumns / kTileCells;
constexpr std::int64_t kMaxVisits = 4000;

struct Visit {
  int antenna, tile, offset_x, offset_y;
  bool wrapped;  // folded an odd number of times
};

struct Touch {
  int tile, offset;
  bool odd;
};

void touches(int start, int n_taps, int n_cells, std::vector<Touch>& out) {
  out.clear();
  bool odd = false;
  for (int base = start; base + n_taps > 0; base -= n_cells, odd = !odd) {
    const int from = std::max(base, 0), to = std::min(base + n_taps, n_cells) - 1;
    for (int tile = from / kTileCells; tile <= to / kTileCells && from <= to; ++tile) {
      out.push_back({tile, base - tile * kTileCells, odd});
    }
  }
}

struct Box {
  int first_x, first_y, n_rows;
};

// The occupied box where it fits the grid: a common shift of all antennas, which no product sees.
Box box_of(const std::vector<Footprint>& footprints, int support) {
  Box box{footprints[0].first_x, footprints[0].first_y, 0};
  int last_x = box.first_x, last_y = box.first_y;
  for (const auto& f : footprints) {
    box.first_x = std::min(box.first_x, f.first_x);
    box.first_y = std::min(box.first_y, f.first_y);
    last_x = std::max(last_x, f.first_x);
    last_y = std::max(last_y, f.first_y);
  }
  box.n_rows = last_y - box.first_y + support;
  if (box.n_rows > kFusedPixels) box.n_rows = kFusedPixels;  // rows wrap
  return box;
}

std::vector<Visit> visits_of(const std::vector<Footprint>& footprints, const Box& box,
                             int support) {
  std::vector<Visit> visits;
  std::vector<Touch> x, y;
  const auto wrap = [](int v) { return ((v % kFusedPixels) + kFusedPixels) % kFusedPixels; };
  for (std::size_t a = 0; a < footprints.size(); ++a) {
    touches(wrap(footprints[a].first_x - box.first_x), support, kFusedColumns, x);
    touches(wrap(footprints[a].first_y - box.first_y), support, kFusedPixels, y);
    for (const auto& b : y) {
      for (const auto& c : x) {
        visits.push_back(
            {static_cast<int>(a), b.tile * kTiles + c.tile, c.offset, b.offset, c.odd});
      }
    }
  }
  std::stable_sort(visits.begin(), visits.end(),
                   [](const Visit& p, const Visit& q) { return p.tile < q.tile; });
  return visits;
}

void find_columns(const AllSkyConfig& config, FusedTables& tables) {
  const auto above = above_horizon(config);
  int last[2] = {-1, -1};
  tables.first_column[0] = tables.first_column[1] = kFusedColumns;
  for (int p = 0; p < kFusedPixels * kFusedPixels; ++p) {
    if (std::isnan(above[static_cast<std::size_t>(p)])) continue;
    const int column = p % kFusedPixels / 2, parity = p % 2;
    tables.first_column[parity] = std::min(tables.first_column[parity], column);
    last[parity] = std::max(last[parity], column);
  }
  for (int h = 0; h < 2; ++h) {
    tables.n_columns = std::max(tables.n_columns, last[h] - tables.first_column[h] + 1);
  }
  for (int& first : tables.first_column) {
    first = std::max(0, std::min(first, kFusedColumns - tables.n_columns));
  }
}

std::vector<FusedTile> tiles_of(const std::vector<Visit>& visits, int n_tiles) {
  std::vector<FusedTile> tiles(static_cast<std::size_t>(n_tiles));
  for (int t = 0; t < n_tiles; ++t) {
    tiles[static_cast<std::size_t>(t)].tile_x = static_cast<std::uint16_t>(t % kTiles);
    tiles[static_cast<std::size_t>(t)].tile_y = static_cast<std::uint16_t>(t / kTiles);
  }
  for (std::size_t v = visits.size(); v-- > 0;) {
    auto& tile = tiles[static_cast<std::size_t>(visits[v].tile)];
    tile.begin = static_cast<std::uint16_t>(v);
    ++tile.count;
  }
  std::stable_sort(tiles.begin(), tiles.end(),
                   [](const FusedTile& a, const FusedTile& b) { return a.count > b.count; });
  return tiles;
}

// Weights of a visit on the cells of its tile, with the sign (-1)^(x + y) that moves direction 0 to
// the middle of the image, and the sign of the fold for odd columns.
void put_weights(const AllSkyConfig& config, const Visit& visit, const AntennaCells& cells,
                 int parity, float* to) {
  const auto k = static_cast<int>(config.function.support);
  for (int cell = 0; cell < kTileCells; ++cell) {
    const float sign = cell % 2 == 0 ? 1.0f : -1.0f;
    const float fold = visit.wrapped && parity == 1 ? -1.0f : 1.0f;
    const int i = cell - visit.offset_x, j = cell - visit.offset_y;
    const auto at = [&](const auto& w, int tap) {
      return tap >= 0 && tap < k ? static_cast<float>(w[static_cast<std::size_t>(tap)]) : 0.0f;
    };
    to[cell] = sign * fold * at(cells.weight_x, i);
    to[kTileCells + cell] = sign * at(cells.weight_y, j);
  }
}

}  // namespace

std::int64_t fused_shared_bytes(const FusedTables& t) {
  const std::int64_t warps = (t.n_columns + 3) / 4;
  const std::int64_t exchange = warps * 4 * kFusedPixels * 8;
  const std::int64_t grid = std::max<std::int64_t>(2 * t.n_rows * 68 * 8, exchange);
  return grid + exchange + t.n_visits * std::int64_t{16 + 64} + t.n_antennas * std::int64_t{64} +
         t.n_tiles * std::int64_t{8} + 2048;
}

FusedTables fused_tables(const AllSkyConfig& config, const ArrayOfUsed& array,
                         const std::vector<double>& positions, std::int64_t max_shared_bytes) {
  FusedTables tables;
  const std::size_t n = array.antenna.size();
  if (config.n_pixels != kFusedPixels || n == 0) return tables;
  const auto support = static_cast<int>(config.function.support);
  const auto channels = static_cast<std::size_t>(config.channels.n_channels);
  tables.n_antennas = static_cast<int>(n);
  find_columns(config, tables);
  std::vector<std::vector<Visit>> visits(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const auto footprints = antenna_footprints(array, &positions[2 * c * n], support);
    const Box box = box_of(footprints, support);
    visits[c] = visits_of(footprints, box, support);
    const int rows = (box.n_rows + kTileCells - 1) / kTileCells * kTileCells;
    tables.n_rows = std::max(tables.n_rows, rows);
    tables.n_visits = std::max(tables.n_visits, static_cast<int>(visits[c].size()));
  }
  tables.n_tiles = kTiles * tables.n_rows / kTileCells;
  tables.fits = tables.n_columns > 0 && tables.n_visits <= kMaxVisits &&
                fused_shared_bytes(tables) <= max_shared_bytes;
  if (!tables.fits) return tables;
  tables.slots.assign(channels * n * 4, 0xffff);
  const auto n_visits = static_cast<std::size_t>(tables.n_visits);
  tables.weights.assign(2 * channels * n_visits * 16, 0.0f);
  for (std::size_t c = 0; c < channels; ++c) {
    const auto tiles = tiles_of(visits[c], tables.n_tiles);
    tables.tiles.insert(tables.tiles.end(), tiles.begin(), tiles.end());
    const auto cells = antenna_cells(config, static_cast<std::int64_t>(c));
    std::vector<int> next(n);
    for (std::size_t v = 0; v < visits[c].size(); ++v) {
      const auto a = static_cast<std::size_t>(visits[c][v].antenna);
      tables.slots[(c * n + a) * 4 + static_cast<std::size_t>(next[a]++)] =
          static_cast<std::uint16_t>(v);
      for (std::size_t h = 0; h < 2; ++h) {
        put_weights(config, visits[c][v], cells[static_cast<std::size_t>(array.antenna[a])],
                    static_cast<int>(h), &tables.weights[((h * channels + c) * n_visits + v) * 16]);
      }
    }
  }
  return tables;
}

}  // namespace ryle::image::detail
