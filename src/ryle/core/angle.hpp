// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <optional>
#include <string>

namespace ryle {

/// "2.9arcmin", "30deg", "74arcsec", "0.1rad"; nothing when the number or its unit is not one.
std::optional<double> parse_angle_rad(const std::string& text);

}  // namespace ryle
