// SPDX-License-Identifier: BSD-3-Clause
// Cells from the texts of their definitions, one function for each kind. Private to pipeline/grid/.
#pragma once
#include <memory>
#include <string>

#include "ryle/pipeline/grid/sky_cells.hpp"

namespace ryle::io {

std::unique_ptr<SkyCells> map_cells_from(const std::string& definition);
std::unique_ptr<SkyCells> healpix_cells_from(const std::string& definition);
std::unique_ptr<SkyCells> sight_line_cells_from(const std::string& definition);

}  // namespace ryle::io
