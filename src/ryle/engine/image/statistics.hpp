// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/image/image.hpp"

namespace ryle::image {

/// Robust level and spread of the pixels that are not NaN. @unit sigma = 1.4826 x median absolute
/// deviation
struct Spread {
  double median = 0;
  double sigma = 0;
  std::int64_t n_pixels = 0;
};
Spread spread_of(const std::vector<double>& image);

/// Highest pixel, how far it stands above the median, and where it is to a fraction of a pixel: a
/// parabola through the three pixels of its row and of its column.
struct Peak {
  double value = 0;
  double sigmas = 0;    ///< (value - median) / sigma of the whole image
  Direction direction;  ///< refined
  std::int64_t x = 0, y = 0;
};
/// Throws ConfigError when every pixel is NaN or the size is not that of the configuration.
Peak peak_of(const Config& config, const std::vector<double>& image);
/// The same inside a circle of `radius` direction cosines; sigmas still refer to the whole image.
Peak peak_near(const Config& config, const std::vector<double>& image, const Direction& center,
               double radius);

}  // namespace ryle::image
