// SPDX-License-Identifier: BSD-3-Clause
// Cells from the texts of their definitions, one function for each kind. Private to product/.
#pragma once
#include <memory>
#include <string>

#include "ryle/product/sky_cells.hpp"

namespace ryle::product {

std::unique_ptr<SkyCells> map_cells_from(const std::string& definition);
std::unique_ptr<SkyCells> healpix_cells_from(const std::string& definition);
std::unique_ptr<SkyCells> sight_line_cells_from(const std::string& definition);

}  // namespace ryle::product
