// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <functional>
#include <vector>

#include "ryle/pipeline/grid/grid_setup.hpp"

/// Maps of medians in bands of the sky: a median needs all samples of its cell at once, but no
/// others.
namespace ryle::pipeline {

/// Directions of a block in pieces: first sample of the piece within the block, its directions.
void for_directions(Queue& queue, const GridSetup& setup, const GridBlock& block,
                    GridBlockData& data,
                    const std::function<void(std::int64_t, grid::Positions)>& body);

grid::Cells cells_of_band(const grid::Cells& all, const MedianBand& band);

/// Bands of the map that see at most so many samples each: halved until they do. Reads positions
/// once for every halving. Throws ConfigError, with the numbers, where a band cannot be halved any
/// more.
std::vector<MedianBand> choose_bands(Queue& queue, const GridSetup& setup,
                                     const GridOptions& options, std::int64_t max_samples);

}  // namespace ryle::pipeline
