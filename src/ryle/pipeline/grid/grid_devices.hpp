// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/pipeline/grid/grid_setup.hpp"

namespace ryle::pipeline {

/// What each CUDA device holds, where they are used. Throws UnsupportedError where there is none,
/// ConfigError with the numbers where it does not fit.
void plan_grid_devices(const GridSetup& setup, const GridOptions& options, GridPlan& plan);

/// Whether so many values (samples x channels) take so long on CPUs that the start of a device is
/// little beside it.
bool worth_a_device(std::int64_t n_values, int n_workers);

}  // namespace ryle::pipeline
