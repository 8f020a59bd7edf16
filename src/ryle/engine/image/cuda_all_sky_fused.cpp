// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cuda_all_sky_fused.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "ryle/engine/image/geometry.hpp"

namespace ryle::image::detail {
namespace {

constexpr int kTile = kFusedTile;
constexpr int kTiles = kFusedColumns / kTile;  // beside each other
constexpr std::size_t kAbreast = 4;            // tiles of a quad

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
    for (int tile = from / kTile; tile <= to / kTile && from <= to; ++tile) {
      out.push_back({tile, base - tile * kTile, odd});
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
    const int along = tables.transposed ? p / kFusedPixels : p % kFusedPixels;
    const int column = along / 2, parity = along % 2;
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

struct Tile {
  int at = 0;
  std::vector<Visit> plain, folded;
};

/// What a half lays on the grids.
struct Quad {
  std::vector<Tile> tiles;
  int plain = 0, folded = 0;  // groups of rounds
};
struct Half {
  std::vector<Quad> quads;  // as warps take them
  int n_groups = 0;
};
struct Halves {
  std::array<Half, 2> half;
  std::vector<int> empty;
};

// Tiles of about as many visits stand together, so that few lanes idle.
std::vector<Quad> quads_of(const std::vector<Tile>& tiles) {
  std::vector<Quad> quads;
  const auto groups = [](std::size_t n) {
    return (static_cast<int>(n) + kFusedUnroll - 1) / kFusedUnroll;
  };
  for (const auto& tile : tiles) {
    if (quads.empty() || quads.back().tiles.size() == kAbreast) quads.emplace_back();
    auto& quad = quads.back();
    quad.tiles.push_back(tile);
    quad.plain = std::max(quad.plain, groups(tile.plain.size()));
    quad.folded = std::max(quad.folded, groups(tile.folded.size()));
  }
  return quads;
}

// Instructions of a warp and spectrum, about: what it does besides, then quads, largest first, to
// the warp that has least to do on the scheduler (every fourth warp) that has least.
std::vector<Quad> dealt_to_warps(std::vector<Quad> quads, const FusedTables& tables) {
  constexpr double kUnit = 400, kLoad = 2, kQuad = 60, kGroup = 68;
  const auto cost = [&](const Quad& q) { return kQuad + kGroup * (q.plain + q.folded); };
  const int units = fused_column_units(tables.n_columns);
  std::array<double, kFusedWarps> load{};
  std::array<double, 4> scheduler{};
  for (int w = 0; w < kFusedWarps; ++w) {
    auto& own = load[static_cast<std::size_t>(w)];
    own = kUnit * ((units - w + kFusedWarps - 1) / kFusedWarps);
    if (w >= kFusedWarps - kFusedLoaders) own += kLoad * tables.n_antennas / kFusedLoaders;
    scheduler[static_cast<std::size_t>(w % 4)] += own;
  }
  std::stable_sort(quads.begin(), quads.end(),
                   [&](const Quad& a, const Quad& b) { return cost(a) > cost(b); });
  std::array<std::vector<Quad>, kFusedWarps> of_warp;
  std::size_t longest = 0;
  for (auto& quad : quads) {
    std::size_t best = 0;
    const auto busy = [&](std::size_t w) { return load[w] + scheduler[w % 4] / 4; };
    for (std::size_t w = 1; w < kFusedWarps; ++w) {
      if (busy(w) < busy(best)) best = w;
    }
    load[best] += cost(quad);
    scheduler[best % 4] += cost(quad);
    of_warp[best].push_back(std::move(quad));
    longest = std::max(longest, of_warp[best].size());
  }
  std::vector<Quad> dealt(longest * kFusedWarps);
  for (std::size_t w = 0; w < kFusedWarps; ++w) {
    for (std::size_t k = 0; k < of_warp[w].size(); ++k) {
      dealt[k * kFusedWarps + w] = std::move(of_warp[w][k]);
    }
  }
  return dealt;
}

// Tiles are dealt out busiest first, so that both halves get about the same number of visits.
Halves halves_of(const std::vector<Visit>& visits, const FusedTables& tables) {
  Halves halves;
  std::vector<Tile> tiles;
  for (int t = 0; t < kTiles * tables.n_rows / kTile; ++t) {
    if (t % kTiles >= tables.n_tile_columns * kTileCells / kTile) continue;
    Tile tile;
    tile.at = t / kTiles * kTile * kFusedPitch + t % kTiles * kTile;
    const auto before = [](const Visit& v, int of) { return v.tile < of; };
    const auto begin = std::lower_bound(visits.begin(), visits.end(), t, before);
    const auto end = std::lower_bound(begin, visits.end(), t + 1, before);
    for (auto v = begin; v != end; ++v) (v->wrapped ? tile.folded : tile.plain).push_back(*v);
    if (begin == end) {
      halves.empty.push_back(tile.at);
    } else {
      tiles.push_back(std::move(tile));
    }
  }
  std::stable_sort(tiles.begin(), tiles.end(), [](const Tile& a, const Tile& b) {
    return std::pair(a.folded.size(), a.plain.size()) > std::pair(b.folded.size(), b.plain.size());
  });
  std::array<std::vector<Tile>, 2> shares;
  int dealt = 0;
  for (const auto& tile : tiles) {
    const bool second = dealt % 4 == 1 || dealt % 4 == 2;
    ++dealt;
    shares[second ? 1 : 0].push_back(tile);
  }
  for (std::size_t h = 0; h < 2; ++h) {
    auto& half = halves.half[h];
    half.quads = dealt_to_warps(quads_of(shares[h]), tables);
    for (const auto& quad : half.quads) half.n_groups += quad.plain + quad.folded;
  }
  return halves;
}

// Weights of a visit on the cells of its tile, with the sign (-1)^(x + y) that moves direction 0 to
// the middle of the image.
void put_weights(const AllSkyConfig& config, const Visit& visit, const AntennaCells& cells,
                 bool transposed, float* to) {
  const auto k = static_cast<int>(config.function.support);
  const auto& weight_x = transposed ? cells.weight_y : cells.weight_x;
  const auto& weight_y = transposed ? cells.weight_x : cells.weight_y;
  for (int cell = 0; cell < kTile; ++cell) {
    const float sign = cell % 2 == 0 ? 1.0f : -1.0f;
    const int i = cell - visit.offset_x, j = cell - visit.offset_y;
    const auto at = [&](const auto& w, int tap) {
      return tap >= 0 && tap < k ? static_cast<float>(w[static_cast<std::size_t>(tap)]) : 0.0f;
    };
    to[cell] = sign * at(weight_x, i);
    to[kTile + cell] = sign * at(weight_y, j);
  }
}

void put_half(const AllSkyConfig& config, const ArrayOfUsed& array, const Half& half,
              const std::vector<AntennaCells>& cells, std::size_t at, FusedTables& tables) {
  const auto n_rounds = static_cast<std::size_t>(tables.n_rounds);
  std::size_t group = 0;
  const auto put = [&](const std::vector<Visit>& visits, std::size_t abreast) {
    for (std::size_t k = 0; k < visits.size(); ++k) {
      const auto a = static_cast<std::size_t>(visits[k].antenna);
      const std::size_t round = at * n_rounds + group * kFusedUnroll + k;
      tables.who[(round / kFusedUnroll * kAbreast + abreast) * kFusedUnroll + k % kFusedUnroll] =
          static_cast<std::uint32_t>(16 * a);
      put_weights(config, visits[k], cells[static_cast<std::size_t>(array.antenna[a])],
                  tables.transposed, &tables.weights[(round * kAbreast + abreast) * 2 * kTile]);
    }
  };
  for (std::size_t q = 0; q < half.quads.size(); ++q) {
    const auto& quad = half.quads[q];
    FusedTile* entry =
        &tables.tiles[(at * static_cast<std::size_t>(tables.n_quads) + q) * kAbreast];
    for (std::size_t k = 0; k < kAbreast; ++k) {
      entry[k].group = static_cast<std::uint32_t>(group);
      entry[k].plain = static_cast<std::uint16_t>(quad.plain);
      entry[k].folded = static_cast<std::uint16_t>(quad.folded);
    }
    for (std::size_t k = 0; k < quad.tiles.size(); ++k) {
      entry[k].at = static_cast<std::uint32_t>(quad.tiles[k].at);
      put(quad.tiles[k].plain, k);
    }
    group += static_cast<std::size_t>(quad.plain);
    for (std::size_t k = 0; k < quad.tiles.size(); ++k) put(quad.tiles[k].folded, k);
    group += static_cast<std::size_t>(quad.folded);
  }
}

// Footprints and their boxes of all channels, with the shorter axis of the aperture as rows.
std::vector<std::vector<Footprint>> footprints_of(const AllSkyConfig& config,
                                                  const ArrayOfUsed& array,
                                                  const std::vector<double>& positions,
                                                  FusedTables& tables) {
  const auto support = static_cast<int>(config.function.support);
  const std::size_t n = array.antenna.size();
  std::vector<std::vector<Footprint>> footprints;
  int longest_x = 0, longest_y = 0;
  for (std::size_t c = 0; c < static_cast<std::size_t>(config.channels.n_channels); ++c) {
    footprints.push_back(antenna_footprints(array, &positions[2 * c * n], support));
    const auto [west, east] =
        std::minmax_element(footprints.back().begin(), footprints.back().end(),
                            [](auto a, auto b) { return a.first_x < b.first_x; });
    const auto [first, last] =
        std::minmax_element(footprints.back().begin(), footprints.back().end(),
                            [](auto a, auto b) { return a.first_y < b.first_y; });
    longest_x = std::max(longest_x, east->first_x - west->first_x);
    longest_y = std::max(longest_y, last->first_y - first->first_y);
  }
  tables.transposed = longest_y > longest_x;
  if (tables.transposed) {
    for (auto& channel : footprints) {
      for (auto& f : channel) std::swap(f.first_x, f.first_y);
    }
  }
  return footprints;
}

}  // namespace

std::int64_t fused_shared_bytes(const FusedTables& t) {
  return std::int64_t{2} * t.n_rows * kFusedPitch * 8 +
         std::int64_t{2} * kFusedWarps * kFusedExchange * 8 +
         (t.n_rounds + kFusedUnroll) * std::int64_t{128 + 16} +
         (t.n_antennas + 1) * std::int64_t{4 * 16} +
         t.n_quads * std::int64_t{4 * sizeof(FusedTile)} + t.n_empty * std::int64_t{4} + 1024;
}

FusedTables fused_tables(const AllSkyConfig& config, const ArrayOfUsed& array,
                         const std::vector<double>& positions, std::int64_t max_shared_bytes) {
  FusedTables tables;
  const std::size_t n = array.antenna.size();
  // Beyond this many the fields alone would not fit.
  if (config.n_pixels != kFusedPixels || n == 0 || n > 4000) return tables;
  const auto support = static_cast<int>(config.function.support);
  const auto channels = static_cast<std::size_t>(config.channels.n_channels);
  tables.n_antennas = static_cast<int>(n);
  const auto footprints = footprints_of(config, array, positions, tables);
  find_columns(config, tables);
  if (tables.n_columns == 0) return tables;
  std::vector<std::vector<Visit>> visits(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const Box box = box_of(footprints[c], support);
    visits[c] = visits_of(footprints[c], box, support);
    const auto eights = [](int cells) { return (cells + kTileCells - 1) / kTileCells; };
    // What the kernel is compiled for: 4 eights of rows and more; 4, 6 or 8 of columns.
    tables.n_rows = std::max({tables.n_rows, kTileCells * eights(box.n_rows), 4 * kTileCells});
    tables.n_tile_columns =
        std::max({tables.n_tile_columns, (eights(box.n_columns) + 1) / 2 * 2, 4});
  }
  std::vector<Halves> halves;
  for (const auto& each : visits) {
    halves.push_back(halves_of(each, tables));
    tables.n_empty = std::max(tables.n_empty, static_cast<int>(halves.back().empty.size()));
    for (const auto& half : halves.back().half) {
      tables.n_quads = std::max(tables.n_quads, static_cast<int>(half.quads.size()));
      tables.n_rounds = std::max(tables.n_rounds, half.n_groups * kFusedUnroll);
    }
  }
  tables.fits = fused_shared_bytes(tables) <= max_shared_bytes;
  if (!tables.fits) return tables;
  const std::size_t rounds = 2 * channels * static_cast<std::size_t>(tables.n_rounds);
  tables.tiles.resize(2 * channels * static_cast<std::size_t>(tables.n_quads) * kAbreast);
  const auto n_empty = static_cast<std::size_t>(tables.n_empty);
  tables.empty.assign(channels * n_empty, FusedTile::kNone);
  tables.who.assign(rounds * kAbreast, static_cast<std::uint32_t>(16 * n));
  tables.weights.assign(rounds * kAbreast * 2 * kTile, 0.0f);
  for (std::size_t c = 0; c < channels; ++c) {
    const auto cells = antenna_cells(config, static_cast<std::int64_t>(c));
    for (std::size_t h = 0; h < 2; ++h) {
      put_half(config, array, halves[c].half[h], cells, 2 * c + h, tables);
    }
    for (std::size_t k = 0; k < halves[c].empty.size(); ++k) {
      tables.empty[c * n_empty + k] = static_cast<std::uint32_t>(halves[c].empty[k]);
    }
  }
  return tables;
}

}  // namespace ryle::image::detail
