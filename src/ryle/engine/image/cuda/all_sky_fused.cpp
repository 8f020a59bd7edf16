// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cuda/all_sky_fused.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "ryle/engine/image/geometry.hpp"

namespace ryle::image::detail {
namespace {

constexpr int kTile = kFusedTile;
constexpr int kTiles = kFusedColumns / kTile;  // beside each other
constexpr std::size_t kAbreast = 4;            // tiles of a quad
constexpr int kFolds = kFusedPixels / kFusedColumns;

struct Visit {
  int antenna, tile, offset_x, offset_y, fold;
};

struct Touch {
  int tile, offset, fold;
};

void touches(int start, int n_taps, int n_cells, std::vector<Touch>& out) {
  out.clear();
  int fold = 0;
  for (int base = start; base + n_taps > 0; base -= n_cells, fold = (fold + 1) % kFolds) {
    const int from = std::max(base, 0), to = std::min(base + n_taps, n_cells) - 1;
    for (int tile = from / kTile; tile <= to / kTile && from <= to; ++tile) {
      out.push_back({tile, base - tile * kTile, fold});
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
  box.n_rows = std::min(last_y - box.first_y + support, kFusedPixels);      // beyond, rows wrap
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
            {static_cast<int>(a), b.tile * kTiles + c.tile, c.offset, b.offset, c.fold});
      }
    }
  }
  std::stable_sort(visits.begin(), visits.end(), [](const Visit& p, const Visit& q) {
    return std::pair(p.tile, p.fold) < std::pair(q.tile, q.fold);
  });
  return visits;
}

void find_columns(const AllSkyConfig& config, FusedTables& tables) {
  const auto above = above_horizon(config);
  std::array<int, kFusedBlocks> first, last;
  first.fill(kFusedColumns);
  last.fill(-1);
  for (int p = 0; p < kFusedPixels * kFusedPixels; ++p) {
    if (std::isnan(above[p])) continue;
    const int along = tables.transposed ? p / kFusedPixels : p % kFusedPixels;
    const auto h = static_cast<std::size_t>(along % kFusedBlocks);
    first[h] = std::min(first[h], along / kFusedBlocks);
    last[h] = std::max(last[h], along / kFusedBlocks);
  }
  for (std::size_t h = 0; h < first.size(); ++h) {
    tables.n_groups = std::max(tables.n_groups, (last[h] - first[h] + 1 + 3) / 4);
  }
  for (std::size_t h = 0; h < first.size(); ++h) {
    tables.first_column[h] = std::min(first[h], kFusedColumns - 4 * tables.n_groups);
  }
}

using Groups = std::array<int, kFolds>;  // of rounds of visits

struct Tile {
  int at = 0;
  std::array<std::vector<Visit>, kFolds> visits;  // by fold
  Groups groups{};
};

int n_groups_of(const Groups& groups) { return std::accumulate(groups.begin(), groups.end(), 0); }

Groups groups_of(const Tile& tile) {
  Groups groups;
  for (std::size_t m = 0; m < groups.size(); ++m) {
    groups[m] = (static_cast<int>(tile.visits[m].size()) + kFusedUnroll - 1) / kFusedUnroll;
  }
  return groups;
}

Groups both(const Groups& a, const Groups& b) {
  Groups groups;
  for (std::size_t m = 0; m < groups.size(); ++m) groups[m] = std::max(a[m], b[m]);
  return groups;
}

struct Quad {
  std::vector<Tile> tiles;
  Groups groups{};
};
/// What a thread block lays on the grids.
struct Partition {
  std::vector<Quad> quads;  // as warps take them
  int n_groups = 0;
};
struct Partitions {
  std::array<Partition, kFusedBlocks> partition;
  std::vector<int> empty;
};

// The busiest tile that is left, and with it those that lengthen its list least, so that few lanes
// idle.
std::vector<Quad> quads_of(std::vector<Tile> tiles) {
  std::stable_sort(tiles.begin(), tiles.end(), [](const Tile& a, const Tile& b) {
    return n_groups_of(a.groups) > n_groups_of(b.groups);
  });
  std::vector<Quad> quads;
  while (!tiles.empty()) {
    auto& quad = quads.emplace_back();
    while (quad.tiles.size() < kAbreast && !tiles.empty()) {
      const auto longer = [&](const Tile& t) { return n_groups_of(both(quad.groups, t.groups)); };
      // Of as good ones the first, which is the busiest.
      const auto best = quad.tiles.empty() ? tiles.begin()
                                           : std::min_element(tiles.begin(), tiles.end(),
                                                              [&](const Tile& a, const Tile& b) {
                                                                return longer(a) < longer(b);
                                                              });
      quad.groups = both(quad.groups, best->groups);
      quad.tiles.push_back(std::move(*best));
      tiles.erase(best);
    }
  }
  return quads;
}

// Instructions of a warp and spectrum, about.
double cost_of(const Quad& quad) {
  constexpr double kQuad = 60, kGroup = 68;
  return kQuad + kGroup * n_groups_of(quad.groups);
}

void sort_by_cost(std::vector<Quad>& quads) {
  std::stable_sort(quads.begin(), quads.end(),
                   [](const Quad& a, const Quad& b) { return cost_of(a) > cost_of(b); });
}

// What a warp does besides, then quads, largest first, to the warp that has least to do on the
// scheduler (every fourth warp) that has least.
std::vector<Quad> dealt_to_warps(std::vector<Quad> quads, const FusedTables& tables) {
  constexpr double kColumns = 800, kLoad = 2;
  std::array<double, kFusedWarps> load{};
  std::array<double, 4> scheduler{};
  for (int w = 0; w < kFusedWarps; ++w) {
    auto& own = load[w];
    if (w < tables.n_groups) own = kColumns;
    if (w >= kFusedWarps - kFusedLoaders) own += kLoad * tables.n_antennas / kFusedLoaders;
    scheduler[w % 4] += own;
  }
  sort_by_cost(quads);
  std::array<std::vector<Quad>, kFusedWarps> of_warp;
  std::size_t longest = 0;
  for (auto& quad : quads) {
    std::size_t best = 0;
    const auto busy = [&](std::size_t w) { return load[w] + scheduler[w % 4] / 4; };
    for (std::size_t w = 1; w < kFusedWarps; ++w) {
      if (busy(w) < busy(best)) best = w;
    }
    load[best] += cost_of(quad);
    scheduler[best % 4] += cost_of(quad);
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

// Quads are dealt out longest first, each to the block that has least to do.
Partitions partitions_of(const std::vector<Visit>& visits, const FusedTables& tables) {
  Partitions partitions;
  std::vector<Tile> tiles;
  for (int t = 0; t < kTiles * tables.n_rows / kTile; ++t) {
    if (t % kTiles >= tables.n_tile_columns * kTileCells / kTile) continue;
    Tile tile;
    tile.at = t / kTiles * kTile * kFusedPitch + t % kTiles * kTile;
    const auto before = [](const Visit& v, int of) { return v.tile < of; };
    const auto begin = std::lower_bound(visits.begin(), visits.end(), t, before);
    const auto end = std::lower_bound(begin, visits.end(), t + 1, before);
    for (auto v = begin; v != end; ++v) {
      tile.visits[v->fold].push_back(*v);
    }
    if (begin == end) {
      partitions.empty.push_back(tile.at);
    } else {
      tile.groups = groups_of(tile);
      tiles.push_back(std::move(tile));
    }
  }
  auto quads = quads_of(std::move(tiles));
  sort_by_cost(quads);
  std::array<std::vector<Quad>, kFusedBlocks> of_partition;
  std::array<double, kFusedBlocks> load{};
  for (auto& quad : quads) {
    const auto minimum =
        static_cast<std::size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    load[minimum] += cost_of(quad);
    of_partition[minimum].push_back(std::move(quad));
  }
  for (std::size_t h = 0; h < of_partition.size(); ++h) {
    auto& partition = partitions.partition[h];
    partition.quads = dealt_to_warps(std::move(of_partition[h]), tables);
    for (const auto& quad : partition.quads) partition.n_groups += n_groups_of(quad.groups);
  }
  return partitions;
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
      return tap >= 0 && tap < k ? static_cast<float>(w[tap]) : 0.0f;
    };
    to[cell] = sign * at(weight_x, i);
    to[kTile + cell] = sign * at(weight_y, j);
  }
}

void put_partition(const AllSkyConfig& config, const ArrayOfUsed& array, const Partition& partition,
                   const std::vector<AntennaCells>& cells, std::size_t at, FusedTables& tables) {
  const auto n_rounds = static_cast<std::size_t>(tables.n_rounds);
  std::size_t group = 0;
  const auto put = [&](const std::vector<Visit>& visits, std::size_t abreast) {
    for (std::size_t k = 0; k < visits.size(); ++k) {
      const auto a = static_cast<std::size_t>(visits[k].antenna);
      const std::size_t round = at * n_rounds + group * kFusedUnroll + k;
      tables.who[(round / kFusedUnroll * kAbreast + abreast) * kFusedUnroll + k % kFusedUnroll] =
          static_cast<std::uint32_t>(16 * a);
      put_weights(config, visits[k], cells[array.antenna[a]], tables.transposed,
                  &tables.weights[(round * kAbreast + abreast) * 2 * kTile]);
    }
  };
  for (std::size_t q = 0; q < partition.quads.size(); ++q) {
    const auto& quad = partition.quads[q];
    FusedTile* entry =
        &tables.tiles[(at * static_cast<std::size_t>(tables.n_quads) + q) * kAbreast];
    for (std::size_t k = 0; k < kAbreast; ++k) {
      entry[k].group = static_cast<std::uint32_t>(group);
      entry[k].plain = static_cast<std::uint16_t>(quad.groups[0]);
      entry[k].folded = static_cast<std::uint16_t>(quad.groups[1]);
      if (k < quad.tiles.size()) entry[k].at = static_cast<std::uint32_t>(quad.tiles[k].at);
    }
    for (std::size_t fold = 0; fold < kFolds; ++fold) {
      for (std::size_t k = 0; k < quad.tiles.size(); ++k) put(quad.tiles[k].visits[fold], k);
      group += static_cast<std::size_t>(quad.groups[fold]);
    }
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
  return std::int64_t{2} * fused_grid_rows(t.n_rows) * kFusedPitch * 8 +
         std::int64_t{2} * kFusedWarps * kFusedExchange * 8 +
         (t.n_rounds + kFusedUnroll) * std::int64_t{128 + 16} +
         (t.n_antennas + 1) * std::int64_t{4 * 16} +
         t.n_quads * std::int64_t{4 * sizeof(FusedTile)} + t.n_empty * std::int64_t{4} +
         kFusedTurns * 16 + 16;
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
  if (tables.n_groups == 0) return tables;
  std::vector<std::vector<Visit>> visits(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const Box box = box_of(footprints[c], support);
    visits[c] = visits_of(footprints[c], box, support);
    // What the kernel is compiled for.
    const auto eights = [](int cells) { return (cells + kTileCells - 1) / kTileCells; };
    const int rows = std::max(kTileCells * eights(box.n_rows), 32);
    tables.n_rows = std::max(tables.n_rows, rows > 96 ? kFusedPixels : rows);
    tables.n_tile_columns =
        std::max({tables.n_tile_columns, (eights(box.n_columns) + 1) / 2 * 2, 4});
  }
  std::vector<Partitions> partitions;
  for (const auto& each : visits) {
    partitions.push_back(partitions_of(each, tables));
    tables.n_empty = std::max(tables.n_empty, static_cast<int>(partitions.back().empty.size()));
    for (const auto& partition : partitions.back().partition) {
      tables.n_quads = std::max(tables.n_quads, static_cast<int>(partition.quads.size()));
      tables.n_rounds = std::max(tables.n_rounds, partition.n_groups * kFusedUnroll);
    }
  }
  tables.fits = fused_shared_bytes(tables) <= max_shared_bytes;
  if (!tables.fits) return tables;
  const std::size_t rounds = kFusedBlocks * channels * static_cast<std::size_t>(tables.n_rounds);
  tables.tiles.resize(kFusedBlocks * channels * static_cast<std::size_t>(tables.n_quads) *
                      kAbreast);
  const auto n_empty = static_cast<std::size_t>(tables.n_empty);
  tables.empty.assign(channels * n_empty, FusedTile::kNone);
  tables.who.assign(rounds * kAbreast, static_cast<std::uint32_t>(16 * n));
  tables.weights.assign(rounds * kAbreast * 2 * kTile, 0.0f);
  for (std::size_t c = 0; c < channels; ++c) {
    const auto cells = antenna_cells(config, static_cast<std::int64_t>(c));
    for (std::size_t h = 0; h < kFusedBlocks; ++h) {
      put_partition(config, array, partitions[c].partition[h], cells, kFusedBlocks * c + h, tables);
    }
    for (std::size_t k = 0; k < partitions[c].empty.size(); ++k) {
      tables.empty[c * n_empty + k] = static_cast<std::uint32_t>(partitions[c].empty[k]);
    }
  }
  return tables;
}

}  // namespace ryle::image::detail
