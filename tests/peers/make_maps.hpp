// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <nlohmann/json.hpp>
#include <string>

/// Maps of several projections, HEALPix tables and sight lines whose values say their cell, and
/// where the cells are.
nlohmann::json write_maps(const std::string& directory);
