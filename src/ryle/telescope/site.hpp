// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>

#include "ryle/telescope/array.hpp"

namespace ryle::detail {

/// Sets the geographic reference; throws ConfigError for impossible coordinates (NaN included).
void set_site(ArrayLayout& array, double latitude_deg, double longitude_deg, double height_m);
/// File name without folder and extension.
std::string base_name(const std::string& path);

}  // namespace ryle::detail
