// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>

#include "ryle/engine/grid/cpu/tile.hpp"
#include "ryle/engine/grid/grid.hpp"

namespace ryle::grid::detail {

/// Tiles of the map over the workers of the queue, one tile at a time each.
template <class Real>
std::unique_ptr<Gridder> make_cpu(const Config& config, Cells cells,
                                  const TileKernel<Real>& kernel);

}  // namespace ryle::grid::detail
