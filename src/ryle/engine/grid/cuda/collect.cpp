// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/cuda/collect.hpp"

#include <algorithm>

#include "ryle/engine/grid/cuda/job.hpp"

namespace ryle::grid::detail {
namespace {

constexpr std::int64_t kPart = 4096;
std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// Of row 0 .. 3 of four planes that lie `step` apart.
Moments moments_of(const double* rows, std::int64_t step) {
  return {rows[0], rows[step], rows[2 * step], static_cast<std::int64_t>(rows[3 * step])};
}

}  // namespace

bool is_partial(const std::uint32_t* complete, std::int64_t n_tiles) {
  return std::any_of(complete, complete + n_tiles,
                     [](std::uint32_t bits) { return bits != ~std::uint32_t{0}; });
}

void add_cells(const WarpTiling& tiling, const std::vector<bool>& reached,
               std::vector<CellRange>& cells) {
  for (std::size_t t = 0; t < tiling.tiles.size(); ++t)
    for (std::int64_t lane = 0; reached[t] && lane < kWarp; ++lane) {
      const std::int64_t cell = tiling.cells[t * kWarp + index(lane)];
      if (cell < 0) continue;
      if (!cells.empty() && cells.back().last == cell)
        ++cells.back().last;
      else
        cells.push_back({cell, cell + 1});
    }
}

std::vector<CellRange> joined(std::vector<CellRange> cells) {
  std::sort(cells.begin(), cells.end(),
            [](const CellRange& a, const CellRange& b) { return a.first < b.first; });
  std::size_t n = 0;
  for (const CellRange& r : cells) {
    if (n > 0 && r.first <= cells[n - 1].last)
      cells[n - 1].last = std::max(cells[n - 1].last, r.last);
    else
      cells[n++] = r;
  }
  cells.resize(n);
  return cells;
}

void SumsCollector::add(Queue& queue, const GroupSums& group) {
  const std::int64_t n_cells = sums_.n_cells();
  const auto n_tiles = static_cast<std::int64_t>(tiling_.tiles.size());
  Kept kept{group.first_channel, group.n_channels, {group.complete, group.complete + n_tiles}, {}};
  if (group.own != nullptr) {
    kept.own.resize(index(group.n_channels * n_cells));
    queue.parallel_for(group.n_channels, [&](std::int64_t c) {
      const double* slab = group.own + c / kOwnChannels * kOwnChannels * kMomentRows * n_cells;
      const double* from = slab + c % kOwnChannels * n_cells;
      for (std::int64_t i = 0; i < n_cells; ++i)
        kept.own[index(c * n_cells + i)] = moments_of(from + i, kOwnChannels * n_cells);
    });
  }
  const std::lock_guard lock(mutex_);
  if (shared_.empty()) {
    shared_.resize(index(n_cells));
    queue.parallel_for((n_cells + kPart - 1) / kPart, [&](std::int64_t part) {
      for (std::int64_t i = part * kPart; i < std::min(n_cells, (part + 1) * kPart); ++i)
        shared_[index(i)] = moments_of(group.moments + i, n_cells);
    });
  }
  add_weighted(queue, group);
  groups_.push_back(std::move(kept));
}

void SumsCollector::add_weighted(Queue& queue, const GroupSums& group) {
  const std::int64_t n_cells = sums_.n_cells(),
                     n = whole_ ? n_cells : static_cast<std::int64_t>(tiling_.cells.size()),
                     n_parts = (n + kPart - 1) / kPart;
  queue.parallel_for(n_parts * group.n_channels, [&](std::int64_t job) {
    const std::int64_t c = job / n_parts, first = job % n_parts * kPart;
    const std::int64_t last = std::min(n, first + kPart);
    const double* from = group.weighted + c * n_cells;
    double* to = sums_.weighted_of(group.first_channel + c);
    if (whole_) {
      for (std::int64_t i = first; i < last; ++i) to[i] += from[i];
      return;
    }
    for (std::int64_t k = first; k < last; ++k) {
      const std::int64_t i = tiling_.cells[index(k)];
      if (i >= 0) to[i] += from[i];
    }
  });
}

void SumsCollector::finish(Queue& queue) {
  if (groups_.empty()) return;
  const std::int64_t n_cells = sums_.n_cells();
  const auto n_tiles = static_cast<std::int64_t>(tiling_.tiles.size());
  if (std::any_of(groups_.begin(), groups_.end(), [](const Kept& g) { return !g.own.empty(); }))
    sums_.allow_parting();
  constexpr std::uint32_t kAll = ~std::uint32_t{0};
  queue.parallel_for((n_tiles + 63) / 64, [&](std::int64_t part) {
    for (std::int64_t t = 64 * part; t < std::min(n_tiles, 64 * part + 64); ++t) {
      const bool absent = std::any_of(groups_.begin(), groups_.end(),
                                      [&](const Kept& g) { return g.complete[index(t)] != kAll; });
      for (std::int64_t lane = 0; lane < kWarp; ++lane) {
        const std::int64_t cell = tiling_.cells[index(t * kWarp + lane)];
        if (cell < 0) continue;
        const Moments& all = shared_[index(cell)];
        if (!absent && !sums_.apart(cell)) {
          sums_.shared(cell).add(all);
          continue;
        }
        sums_.part(cell);
        for (const Kept& g : groups_) {
          for (int c = 0; c < g.n_channels; ++c) {
            const bool whole = (g.complete[index(t)] >> c & 1U) != 0;
            sums_.own(g.first_channel + c, cell)
                .add(whole ? all : g.own[index(c * n_cells + cell)]);
          }
        }
      }
    }
  });
}

}  // namespace ryle::grid::detail
