// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <optional>

#include "ryle/engine/grid/grid.hpp"
#include "ryle/engine/grid/order_statistics.hpp"
#include "ryle/pipeline/grid/grid_input.hpp"
#include "ryle/pipeline/grid/grid_scans.hpp"
#include "ryle/pipeline/grid/grid_state.hpp"
#include "ryle/pipeline/grid/sky_cells.hpp"

namespace ryle::pipeline {

/// Cells of a map that are made together: whole tiles of it.
struct MedianBand {
  std::int64_t first_cell = 0, last_cell = 0;
};

/// What is to be made of the files, decided before anything is gridded.
struct GridSetup {
  std::unique_ptr<GridInput> input;
  std::unique_ptr<SkyCells> cells;
  grid::Estimator estimator;
  grid::Config config;
  /// The convolution function times the beam, where values are divided by its mean response.
  std::optional<grid::Convolution> response;
  double response_beam_rad = 0;   ///< of medians, the same: FWHM of the beam; 0: not divided
  std::vector<MedianBand> bands;  ///< of medians that do not fit at once; empty: all cells
  GridIdentity identity;
  GridNotes notes;
  grid::CellMemory cell_memory;     ///< of all cells, from some of them
  std::int64_t choosing_bytes = 0;  ///< held while this was decided
  std::int64_t program_bytes = 0;   ///< resident with the files open, before anything is read

  bool is_mean() const { return estimator.statistic == grid::Statistic::mean; }
  /// Of samples [first, first + n) of a block, in the frame of the cells.
  grid::Positions directions(Queue& queue, const GridBlock& block, const GridBlockData& data,
                             std::int64_t first, std::int64_t n) const;
};

/// Opens the files, reads positions where beam or target need them, and fills in what `summary`
/// says of it all.
GridSetup make_grid_setup(Queue& queue, const GridOptions& options, GridSummary& summary);

/// What a gridder holds for cells, from up to a few ten thousand of them.
grid::CellMemory estimate_cell_memory(Queue& queue, const SkyCells& cells,
                                      const grid::Convolution& convolution);

/// Directions of all cells, made on all workers.
grid::Cells grid_cells(Queue& queue, const SkyCells& cells);
void describe_cells(const SkyCells& cells, GridSummary& summary);

/// --memory, or half of what is free. @unit bytes
std::int64_t grid_memory_limit(const GridOptions& options);

/// Of this process now.
std::int64_t grid_resident_bytes();
/// Of this process so far.
std::int64_t grid_peak_memory_bytes();

/// Chooses how many channels are gridded at a time. `exact`: sums over blocks or from a file.
GridPlan plan_grid_memory(const GridSetup& setup, const GridOptions& options, int n_workers,
                          bool exact);

}  // namespace ryle::pipeline
