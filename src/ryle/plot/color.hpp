// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/plot/picture.hpp"

namespace ryle::plot {

struct Rgb {
  std::uint8_t r = 0, g = 0, b = 0;
  friend bool operator==(const Rgb&, const Rgb&) = default;
};

/// Color at `position` in [0, 1] of a map (values outside are clamped; twilight is cyclic: 0 and 1
/// are one color).
Rgb color_at(ColorMap map, double position);

// One style for all pictures: dark ink on white paper.
inline constexpr Rgb kPaper{255, 255, 255};
inline constexpr Rgb kInk{45, 48, 54};
inline constexpr Rgb kFrame{110, 114, 122};
inline constexpr Rgb kCaption{96, 100, 108};
inline constexpr Rgb kNoData{234, 236, 239};  ///< cells without a value, ground below the horizon

}  // namespace ryle::plot
