// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>

#include "ryle/engine/grid/grid.hpp"

namespace ryle::grid::detail {

/// The direct sum in double over all pairs, as grid.md 1 writes it.
std::unique_ptr<Gridder> make_reference(const Config& config, Cells cells);

}  // namespace ryle::grid::detail
