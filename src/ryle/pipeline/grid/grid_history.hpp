// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>
#include <vector>

#include "ryle/pipeline/grid/grid_scans.hpp"

namespace ryle::pipeline {

/// What the HISTORY of a map says: files, what ran, the convolution function, samples and values
/// that do not count.
std::vector<std::string> grid_history(const GridSummary& summary,
                                      const std::vector<std::string>& files);

}  // namespace ryle::pipeline
