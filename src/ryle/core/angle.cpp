// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/core/angle.hpp"

#include <cstdlib>

#include "ryle/core/units.hpp"

namespace ryle {

std::optional<double> parse_angle_rad(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit(end);
  if (end == text.c_str()) return std::nullopt;
  if (unit == "deg") return number * kDegree_rad;
  if (unit == "arcmin") return number * kDegree_rad / 60;
  if (unit == "arcsec") return number * kDegree_rad / 3600;
  if (unit == "rad") return number;
  return std::nullopt;
}

}  // namespace ryle
