// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/geometry.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "ryle/core/error.hpp"

namespace ryle::grid {

PlanMetadata metadata(const GeometryPlan& plan) { return plan.metadata; }

namespace detail {
namespace {

// Cubes a tile's reach touches, of those the sphere goes through.
template <class Visit>
void each_cube(const Tile& tile, double per_unit, const Visit& visit) {
  const auto first = [&](int a) {
    return static_cast<std::int64_t>((tile.center[a] - tile.reach + 1.5) * per_unit);
  };
  const auto last = [&](int a) {
    return static_cast<std::int64_t>((tile.center[a] + tile.reach + 1.5) * per_unit);
  };
  const double side = 1 / per_unit, half_diagonal = 0.5005 * std::sqrt(3.0) * side;
  const double near2 = (1 - half_diagonal) * std::abs(1 - half_diagonal),
               far2 = (1 + half_diagonal) * (1 + half_diagonal),
               reach2 = (tile.reach + half_diagonal) * (tile.reach + half_diagonal);
  for (std::int64_t i = first(0); i <= last(0); ++i)
    for (std::int64_t j = first(1); j <= last(1); ++j)
      for (std::int64_t k = first(2); k <= last(2); ++k) {
        const double x = (static_cast<double>(i) + 0.5) * side - 1.5;
        const double y = (static_cast<double>(j) + 0.5) * side - 1.5;
        const double z = (static_cast<double>(k) + 0.5) * side - 1.5;
        const double r2 = x * x + y * y + z * z;
        if (r2 < near2 || r2 > far2) continue;
        const double dx = x - tile.center[0], dy = y - tile.center[1], dz = z - tile.center[2];
        if (dx * dx + dy * dy + dz * dz > reach2) continue;
        visit(i, j, k);
      }
}

/// (tile, sample) pairs of a stretch of samples, in the order of the samples.
struct Part {
  std::int64_t begin = 0, end = 0;
  LargeVector<std::uint32_t> tiles;   ///< of one sample after the other
  LargeVector<std::uint32_t> counts;  ///< of tiles, by sample
  std::vector<std::int64_t> of_tile;
  PlanMetadata metadata;
};

void search(std::size_t n_tiles, const TileIndex& index, SearchKernel kernel,
            const Positions& samples, Part& part) {
  constexpr std::int64_t kTogether = 256;
  const std::int64_t n = part.end - part.begin;
  part.counts.resize(n);
  part.tiles.resize(2 * n + 1024);
  std::int64_t found = 0;
  TileIndex::Range range;
  std::uint64_t last_key = ~std::uint64_t{0};
  for (std::int64_t k0 = 0; k0 < n; k0 += kTogether) {
    const std::int64_t here = std::min(kTogether, n - k0);
    const auto from = static_cast<std::size_t>(part.begin + k0);
    std::array<const SearchGroup*, kTogether> groups;
    std::array<std::int32_t, kTogether> n_groups;
    std::int64_t maximum = 0;
    for (std::size_t k = 0; k < static_cast<std::size_t>(here); ++k) {
      const double x = samples.x[from + k], y = samples.y[from + k], z = samples.z[from + k];
      n_groups[k] = 0;
      if (std::isnan(x)) {
        ++part.metadata.bad_positions;
        continue;
      }
      // Scans stay in a cube for a while.
      const std::uint64_t key = index.key(x, y, z);
      if (key != last_key) range = index.find(key);
      last_key = key;
      groups[k] = range.first;
      n_groups[k] = range.n;
      maximum += range.n;
    }
    const auto room = static_cast<std::size_t>(found + (maximum + 1) * SearchGroup::kTiles);
    if (room > part.tiles.size()) part.tiles.resize(room + part.tiles.size() / 2);
    found +=
        kernel(samples.x.data() + from, samples.y.data() + from, samples.z.data() + from, here,
               groups.data(), n_groups.data(), part.tiles.data() + found, part.counts.data() + k0);
  }
  part.of_tile.assign(n_tiles, 0);
  for (std::int64_t f = 0; f < found; ++f) ++part.of_tile[part.tiles[f]];
  std::int64_t reached = 0;
  for (const std::uint32_t count : part.counts) reached += count > 0 ? 1 : 0;
  part.metadata.out_of_reach = n - reached - part.metadata.bad_positions;
}

/// Center and axes of a tile as columns (east, north, outward, 0).
struct Frame {
  using Four = double __attribute__((vector_size(32)));
  Four x, y, z;
  double center[3];
};
std::vector<Frame> frames_of(const std::vector<Tile>& tiles) {
  std::vector<Frame> frames;
  for (const Tile& t : tiles) {
    const Vector &e = t.east, &n = t.north, &c = t.center;
    Frame& f = frames.emplace_back();
    f.x = Frame::Four{e[0], n[0], c[0], 0};
    f.y = Frame::Four{e[1], n[1], c[1], 0};
    f.z = Frame::Four{e[2], n[2], c[2], 0};
    for (std::size_t a = 0; a < 3; ++a) f.center[a] = c[a];
  }
  return frames;
}

// Into the lists of the tiles: `of_tile` says where the next sample of each goes.
void fill(Part& part, const std::vector<Frame>& frames, const Positions& samples,
          GeometryPlan& plan) {
  const std::uint32_t* tile = part.tiles.data();
  const std::uint32_t* count = part.counts.data();
  std::int64_t* const cursor = part.of_tile.data();
  std::uint32_t* const lists = plan.lists.data();
  TileOffset* const offsets = plan.offsets.data();
  const double *x = samples.x.data(), *y = samples.y.data(), *z = samples.z.data();
  const bool listed = plan.offsets.empty();
  for (std::int64_t k = part.begin; k < part.end; ++k, ++count)
    for (const std::uint32_t* const end = tile + *count; tile != end; ++tile) {
      const std::int64_t to = cursor[*tile]++;
      if (listed) {
        lists[to] = static_cast<std::uint32_t>(k);
        continue;
      }
      // Differences in double, then float: what is lost is a part of the tile's radius, not of the
      // sphere's.
      const Frame& f = frames[*tile];
      const Frame::Four v =
          f.x * (x[k] - f.center[0]) + f.y * (y[k] - f.center[1]) + f.z * (z[k] - f.center[2]);
      offsets[to] = {static_cast<float>(v[0]), static_cast<float>(v[1]), static_cast<float>(v[2]),
                     static_cast<std::uint32_t>(k)};
    }
}

void put(SearchGroup& group, int at, const Tile& t, std::int32_t number, double margin) {
  const double rows[SearchGroup::kRows] = {
      t.center[0],      t.center[1],      t.center[2],      t.east[0],       t.east[1],
      t.east[2],        t.north[0],       t.north[1],       t.north[2],      t.reach * t.reach,
      t.x_min - margin, t.x_max + margin, t.y_min - margin, t.y_max + margin};
  for (int r = 0; r < SearchGroup::kRows; ++r) group.bounds[r][at] = rows[r];
  group.tile[at] = static_cast<std::uint32_t>(number);
}

}  // namespace

double TileIndex::choose_cubes(const std::vector<Tile>& tiles) {
  double widest = 1e-6;
  for (const Tile& t : tiles) widest = std::max(widest, t.reach);
  // Cubes as wide as a reach: some six tiles each of a map, which are looked at together.
  per_unit_ = std::min(1 / widest, 6e5);  // 3 units of it fit 21 bits
  // Tiles of cells that are wider than their support have gaps between them: a cube of that size
  // would hold one of the eight that it has room for. Some that lie together say how many do.
  constexpr std::size_t kLooked = 4096;
  constexpr double kFewTiles = 3, kWidestCube = 0.5;
  const std::size_t n = std::min(kLooked, tiles.size());
  for (;; per_unit_ /= 2) {
    std::vector<std::uint64_t> keys;
    for (std::size_t t = 0; t < n; ++t)
      each_cube(tiles[t], per_unit_, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
        keys.push_back(key_of(i, j, k));
      });
    const auto touched = static_cast<double>(keys.size());
    std::sort(keys.begin(), keys.end());
    const auto cubes = static_cast<double>(std::unique(keys.begin(), keys.end()) - keys.begin());
    if (n < kLooked || touched >= kFewTiles * cubes || per_unit_ * kWidestCube < 1)
      return touched / static_cast<double>(std::max<std::size_t>(n, 1));
  }
}

TileIndex::TileIndex(const std::vector<Tile>& tiles, double chord) {
  std::vector<std::pair<std::uint64_t, std::int32_t>> entries;
  entries.reserve(
      static_cast<std::size_t>(1.1 * choose_cubes(tiles) * static_cast<double>(tiles.size())) + 64);
  for (std::size_t t = 0; t < tiles.size(); ++t)
    each_cube(tiles[t], per_unit_, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
      entries.emplace_back(key_of(i, j, k), static_cast<std::int32_t>(t));
    });
  std::sort(entries.begin(), entries.end());
  std::size_t n_cubes = 0, n_groups = 0;
  for (std::size_t e = 0, of_cube = 0; e < entries.size(); ++e) {
    of_cube = e > 0 && entries[e].first == entries[e - 1].first ? of_cube + 1 : 0;
    n_cubes += of_cube == 0 ? 1 : 0;
    n_groups += of_cube % SearchGroup::kTiles == 0 ? 1 : 0;
  }
  std::uint64_t n_slots = 16;
  while (n_slots < 2 * n_cubes) n_slots *= 2;
  mask_ = n_slots - 1;
  slots_.resize(n_slots);
  groups_.reserve(n_groups);
  making_bytes_ = static_cast<std::int64_t>(entries.capacity() * sizeof entries[0]);
  SearchGroup nobody{};
  for (double& reach2 : nobody.bounds[9]) reach2 = -1;
  const double margin = chord * (1 + 1e-9) + 1e-15;
  for (std::size_t e = 0; e < entries.size();) {
    Slot slot{entries[e].first, static_cast<std::int64_t>(groups_.size()), 0};
    for (int n = 0; e < entries.size() && entries[e].first == slot.key; ++e, ++n) {
      if (n % SearchGroup::kTiles == 0) groups_.push_back(nobody);
      put(groups_.back(), n % SearchGroup::kTiles, tiles[entries[e].second], entries[e].second,
          margin);
    }
    slot.n = static_cast<std::int32_t>(static_cast<std::int64_t>(groups_.size()) - slot.begin);
    std::uint64_t at = hash(slot.key) & mask_;
    while (slots_[at].key != kFree) at = (at + 1) & mask_;
    slots_[at] = slot;
  }
}

GeometryPlan make_geometry(Queue& queue, const std::vector<Tile>& tiles, const TileIndex& index,
                           SearchKernel kernel, bool offsets, Positions samples) {
  const std::int64_t n = samples.size();
  if (n > std::numeric_limits<std::uint32_t>::max())
    throw ConfigError("the gridder plans at most 4294967295 samples at once, got " +
                      std::to_string(n));
  // Any number of parts gives the same lists.
  const std::int64_t n_parts =
      std::clamp<std::int64_t>(n / 16'384, 1, std::int64_t{4} * queue.n_workers());
  std::vector<Part> parts(n_parts);
  queue.parallel_for(n_parts, [&](std::int64_t p) {
    Part& part = parts[p];
    part.begin = n * p / n_parts;
    part.end = n * (p + 1) / n_parts;
    search(tiles.size(), index, kernel, samples, part);
  });

  GeometryPlan plan;
  const auto n_tiles = static_cast<std::int64_t>(tiles.size());
  // Where each part begins in each tile's list: lists stay in the order of the samples.
  plan.begin.resize(tiles.size() + 1);
  std::int64_t total = 0;
  for (std::size_t t = 0; t < tiles.size(); ++t) {
    plan.begin[t] = total;
    for (Part& part : parts) total += std::exchange(part.of_tile[t], total);
  }
  plan.begin.back() = total;
  const auto size = static_cast<std::size_t>(total);
  if (offsets) {
    plan.offsets.resize(size);
  } else {
    plan.lists.resize(size);
  }
  const std::vector<Frame> frames = frames_of(tiles);
  queue.parallel_for(n_parts, [&](std::int64_t p) {
    Part& part = parts[p];
    fill(part, frames, samples, plan);
    part.tiles = {};
  });
  plan.metadata = {n, 0, 0, n_tiles, total};
  for (const Part& part : parts) {
    plan.metadata.bad_positions += part.metadata.bad_positions;
    plan.metadata.out_of_reach += part.metadata.out_of_reach;
  }
  plan.samples = std::move(samples);
  return plan;
}

}  // namespace detail

CellMemory cell_memory(const Convolution& convolution, const Cells& cells) {
  const double chord = detail::support_chord(convolution);
  const detail::Tiling tiling = detail::make_tiles(cells, chord);
  const detail::TileIndex index(tiling.tiles, chord);
  // Of each place in a block: its cell, a direction, whether it is one.
  constexpr std::int64_t kPlace_bytes = 8 + 24 + 1;
  const auto n_tiles = static_cast<std::int64_t>(tiling.tiles.size()),
             n_places = static_cast<std::int64_t>(tiling.cells.size());
  return {n_tiles,
          n_tiles * static_cast<std::int64_t>(sizeof(detail::Tile)) + n_places * kPlace_bytes +
              index.bytes(),
          24 * cells.directions.size() + index.making_bytes(),
          n_tiles * static_cast<std::int64_t>(sizeof(detail::Frame) + 8)};
}

}  // namespace ryle::grid
