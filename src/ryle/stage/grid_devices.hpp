// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/stage/grid_setup.hpp"

namespace ryle::stage {

/// What each CUDA device holds, where they are used. Throws UnsupportedError where there is none,
/// ConfigError with the numbers where it does not fit.
void plan_grid_devices(const GridSetup& setup, const GridOptions& options, GridPlan& plan);

}  // namespace ryle::stage
