// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ryle/engine/image/image.hpp"

namespace ryle::image {

enum class Weighting : std::uint8_t {
  natural,  ///< "natural": as the samples are; the lowest noise
  uniform,  ///< "uniform": every cell of the uv plane counts alike; the narrowest beam
  briggs,   ///< "briggs": between the two, by `robust`
};
/// None for another name.
std::optional<Weighting> weighting_named(std::string_view name);

/// Changes the weights of samples.
/// @eq uniform: w / W(cell); briggs: w / (1 + f^2 W(cell)), f^2 = (5 10^-R)^2 / (sum_cells W^2 /
///     sum_samples w); W: sum of the weights in a cell, conjugates included (Briggs 1995, 3.3)
/// @unit cell_waves: side of a cell, 1 / width of the picture; cells begin at whole multiples, as
///       WSClean's do (whose side is that of its padded picture); robust R: -2 about uniform, 2
///       about natural
void weigh(std::vector<Sample>& samples, Weighting weighting, double robust, double cell_waves);

}  // namespace ryle::image
