// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/grid/grid_bands.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ryle/core/error.hpp"

namespace ryle::pipeline {
namespace {

/// How many samples cells [band.first, band.last) may see.
std::int64_t count_near(Queue& queue, const GridSetup& setup, const GridOptions& options,
                        const grid::Cells& all, const MedianBand& band) {
  const auto gridder = grid::make_order_gridder(
      {setup.estimator, 1, options.finish, options.implementation, setup.response_beam_rad},
      cells_of_band(all, band));
  std::int64_t n = 0;
  GridBlockData data;
  for (const GridBlock& block : setup.input->blocks())
    for_directions(queue, setup, block, data, [&](std::int64_t, grid::Positions p) {
      n += std::ssize(gridder->near(queue, std::move(p)));
    });
  return n;
}

}  // namespace

void for_directions(Queue& queue, const GridSetup& setup, const GridBlock& block,
                    GridBlockData& data,
                    const std::function<void(std::int64_t, grid::Positions)>& body) {
  setup.input->read_positions(block, data);
  for (std::int64_t k = 0; k < block.n; k += grid::kSamplesTogether)
    body(k, setup.directions(queue, block, data, k, std::min(grid::kSamplesTogether, block.n - k)));
}

grid::Cells cells_of_band(const grid::Cells& all, const MedianBand& band) {
  grid::Cells some;
  some.width = all.width;
  const auto copy = [&](const auto& from, auto& to) {
    to.assign(from.begin() + band.first_cell, from.begin() + band.last_cell);
  };
  copy(all.directions.x, some.directions.x);
  copy(all.directions.y, some.directions.y);
  copy(all.directions.z, some.directions.z);
  return some;
}

std::vector<MedianBand> choose_bands(Queue& queue, const GridSetup& setup,
                                     const GridOptions& options, std::int64_t max_samples) {
  const grid::Cells all = grid_cells(queue, *setup.cells);
  const std::int64_t n_cells = all.directions.size(),
                     strip = all.width > 0 ? all.width * grid::kBandRows : grid::kBandCells;
  std::vector<MedianBand> bands, open{{0, n_cells}};
  while (!open.empty()) {
    const MedianBand band = open.back();
    open.pop_back();
    const std::int64_t n = count_near(queue, setup, options, all, band);
    if (n <= max_samples) {
      bands.push_back(band);
      continue;
    }
    const std::int64_t n_strips = (band.last_cell - band.first_cell + strip - 1) / strip;
    if (n_strips < 2)
      throw ConfigError(fmt::format(
          "a median is of all samples of a cell at a time: {} cells of the map see {} of them, {} "
          "fit into the memory that is to be used; more --memory, smaller cells or a mean "
          "(--kernel "
          "gauss), which takes {} samples at a time, would do",
          band.last_cell - band.first_cell, n, max_samples, grid::kSamplesTogether));
    const std::int64_t middle = band.first_cell + (n_strips + 1) / 2 * strip;
    open.push_back({middle, band.last_cell});
    open.push_back({band.first_cell, middle});
  }
  return bands;
}

}  // namespace ryle::pipeline
