// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cuda_all_sky_fused.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "ryle/engine/image/geometry.hpp"

namespace ryle::image::detail {
namespace {

constexpr int kTiles = kFusedColumns / kTileCells;
constexpr std::int64_t kMaxVisits = 4000;
constexpr int kNobody = -1;  // the antenna of a visit that fills up a list: no weight

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
  int first_x, first_y, n_columns, n_rows;
};

// The occupied box where it fits the grid: a common shift of all antennas, which no product sees.
Box box_of(const std::vector<Footprint>& footprints, int support) {
  Box box{footprints[0].first_x, footprints[0].first_y, 0, 0};
  int last_x = box.first_x, last_y = box.first_y;
  for (const auto& f : footprints) {
    box.first_x = std::min(box.first_x, f.first_x);
    box.first_y = std::min(box.first_y, f.first_y);
    last_x = std::max(last_x, f.first_x);
    last_y = std::max(last_y, f.first_y);
  }
  box.n_rows = last_y - box.first_y + support;
  if (box.n_rows > kFusedPixels) box.n_rows = kFusedPixels;                 // rows wrap
  box.n_columns = std::min(last_x - box.first_x + support, kFusedColumns);  // columns are folded
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
  std::stable_sort(visits.begin(), visits.end(), [](const Visit& p, const Visit& q) {
    return std::pair(p.tile, p.wrapped) < std::pair(q.tile, q.wrapped);
  });
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

/// What a half lays on the grids: its tiles, and its visits in their order.
struct Half {
  std::vector<FusedTile> tiles;
  std::vector<Visit> visits;
};

// Warp w takes entries w, w + kFusedWarps, ...: there and back along the tiles, busiest first, so
// that warps get about the same number of visits.
void deal_to_warps(std::vector<FusedTile>& tiles) {
  while (tiles.size() % kFusedWarps != 0) tiles.emplace_back();
  for (std::size_t k = kFusedWarps; k < tiles.size(); k += 2 * kFusedWarps) {
    const auto begin = tiles.begin() + static_cast<std::ptrdiff_t>(k);
    std::reverse(begin, begin + kFusedWarps);
  }
}

template <class Iterator>
void add_fours(Iterator begin, Iterator end, std::vector<Visit>& to) {
  to.insert(to.end(), begin, end);
  while (to.size() % kFusedUnroll != 0) to.push_back({kNobody, 0, 0, 0, false});
}

// Tiles are dealt out busiest first, so that both halves get about the same number of visits.
std::array<Half, 2> halves_of(const std::vector<Visit>& visits, int n_tile_columns, int n_rows) {
  std::vector<FusedTile> tiles;
  for (int t = 0; t < kTiles * n_rows / kTileCells; ++t) {
    if (t % kTiles >= n_tile_columns) continue;
    FusedTile tile;
    tile.tile_x = static_cast<std::uint8_t>(t % kTiles);
    tile.tile_y = static_cast<std::uint8_t>(t / kTiles);
    const auto before = [](const Visit& v, int of) { return v.tile < of; };
    const auto begin = std::lower_bound(visits.begin(), visits.end(), t, before);
    const auto end = std::lower_bound(begin, visits.end(), t + 1, before);
    tile.begin = static_cast<std::uint16_t>(begin - visits.begin());
    tile.count = static_cast<std::uint16_t>(end - begin);
    tile.n_folded = static_cast<std::uint16_t>(
        std::count_if(begin, end, [](const Visit& v) { return v.wrapped; }));
    tiles.push_back(tile);
  }
  std::stable_sort(tiles.begin(), tiles.end(),
                   [](const FusedTile& a, const FusedTile& b) { return a.count > b.count; });
  std::array<Half, 2> halves;
  int dealt = 0;
  for (auto tile : tiles) {
    const bool empty = tile.count == 0;
    const bool second = dealt % 4 == 1 || dealt % 4 == 2;
    ++dealt;
    for (const bool half : {false, true}) {
      if (!empty && half != second) continue;
      auto& to = halves[half ? 1 : 0];
      const auto plain = visits.begin() + tile.begin;
      const auto folded = plain + (tile.count - tile.n_folded);
      FusedTile own = tile;
      own.begin = static_cast<std::uint16_t>(to.visits.size());
      add_fours(plain, folded, to.visits);
      const std::size_t n_plain = to.visits.size() - own.begin;
      add_fours(folded, folded + tile.n_folded, to.visits);
      own.count = static_cast<std::uint16_t>(to.visits.size() - own.begin);
      own.n_folded = static_cast<std::uint16_t>(own.count - n_plain);
      to.tiles.push_back(own);
    }
  }
  for (auto& half : halves) deal_to_warps(half.tiles);
  return halves;
}

// Weights of a visit on the cells of its tile, with the sign (-1)^(x + y) that moves direction 0 to
// the middle of the image.
void put_weights(const AllSkyConfig& config, const Visit& visit, const AntennaCells& cells,
                 float* to) {
  const auto k = static_cast<int>(config.function.support);
  for (int cell = 0; cell < kTileCells; ++cell) {
    const float sign = cell % 2 == 0 ? 1.0f : -1.0f;
    const int i = cell - visit.offset_x, j = cell - visit.offset_y;
    const auto at = [&](const auto& w, int tap) {
      return tap >= 0 && tap < k ? static_cast<float>(w[static_cast<std::size_t>(tap)]) : 0.0f;
    };
    to[cell] = sign * at(cells.weight_x, i);
    to[kTileCells + cell] = sign * at(cells.weight_y, j);
  }
}

void put_half(const AllSkyConfig& config, const ArrayOfUsed& array, const Half& half,
              const std::vector<AntennaCells>& cells, std::size_t at, FusedTables& tables) {
  const std::size_t n = array.antenna.size();
  const auto n_tiles = static_cast<std::size_t>(tables.n_tiles);
  const auto n_visits = static_cast<std::size_t>(tables.n_visits);
  std::copy(half.tiles.begin(), half.tiles.end(),
            tables.tiles.begin() + static_cast<std::ptrdiff_t>(at * n_tiles));
  std::vector<std::size_t> next(n);
  for (std::size_t v = 0; v < half.visits.size(); ++v) {
    if (half.visits[v].antenna == kNobody) continue;
    const auto a = static_cast<std::size_t>(half.visits[v].antenna);
    tables.slots[(at * n + a) * 4 + next[a]++] = static_cast<std::uint16_t>(v);
    put_weights(config, half.visits[v], cells[static_cast<std::size_t>(array.antenna[a])],
                &tables.weights[(at * n_visits + v) * 16]);
  }
}

}  // namespace

std::int64_t fused_shared_bytes(const FusedTables& t) {
  const std::int64_t exchanges = std::max(2 * ((t.n_columns + 3) / 4), kFusedWarps);
  return std::int64_t{2} * t.n_rows * kFusedPitch * 8 + exchanges * kFusedExchange * 8 +
         t.n_visits * std::int64_t{2 * 16 + 64} + t.n_antennas * std::int64_t{64} +
         t.n_tiles * std::int64_t{8} + 1024;
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
    if (std::ssize(visits[c]) > kMaxVisits) return tables;
    const auto tiles = [](int cells) { return (cells + kTileCells - 1) / kTileCells; };
    // What the kernel is compiled for: 4 tiles of rows and more; 4, 6 or 8 tiles of columns.
    tables.n_rows = std::max({tables.n_rows, kTileCells * tiles(box.n_rows), 4 * kTileCells});
    tables.n_tile_columns =
        std::max({tables.n_tile_columns, (tiles(box.n_columns) + 1) / 2 * 2, 4});
  }
  std::vector<std::array<Half, 2>> halves;
  for (const auto& each : visits) {
    halves.push_back(halves_of(each, tables.n_tile_columns, tables.n_rows));
    for (const auto& half : halves.back()) {
      tables.n_tiles = std::max(tables.n_tiles, static_cast<int>(half.tiles.size()));
      tables.n_visits = std::max(tables.n_visits, static_cast<int>(half.visits.size()));
    }
  }
  tables.fits = tables.n_columns > 0 && fused_shared_bytes(tables) <= max_shared_bytes;
  if (!tables.fits) return tables;
  tables.slots.assign(2 * channels * n * 4, 0xffff);
  tables.tiles.resize(2 * channels * static_cast<std::size_t>(tables.n_tiles));
  tables.weights.assign(2 * channels * static_cast<std::size_t>(tables.n_visits) * 16, 0.0f);
  for (std::size_t c = 0; c < channels; ++c) {
    const auto cells = antenna_cells(config, static_cast<std::int64_t>(c));
    for (std::size_t h = 0; h < 2; ++h) {
      put_half(config, array, halves[c][h], cells, 2 * c + h, tables);
    }
  }
  return tables;
}

}  // namespace ryle::image::detail
