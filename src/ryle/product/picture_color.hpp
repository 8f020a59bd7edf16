// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/product/picture.hpp"

namespace ryle::picture {

struct Rgb {
  std::uint8_t r = 0, g = 0, b = 0;
  friend bool operator==(const Rgb&, const Rgb&) = default;
};

/// Color at `position` in [0, 1] of a map (values outside are clamped; twilight is cyclic: 0 and 1
/// are one color).
Rgb color_at(ColorMap map, double position);

}  // namespace ryle::picture
