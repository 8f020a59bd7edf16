// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <png.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "ryle/plot/color.hpp"

namespace ryle::plot::test {

/// A PNG read back with libpng.
struct Decoded {
  std::int64_t width = 0, height = 0;
  std::vector<std::uint8_t> rgb;
  Rgb at(std::int64_t x, std::int64_t y) const {
    const auto k = static_cast<std::size_t>(3 * (y * width + x));
    return {rgb[k], rgb[k + 1], rgb[k + 2]};
  }
};

inline Decoded decode(const std::string& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_file(&image, path.c_str()) == 0)
    throw std::runtime_error(image.message);
  image.format = PNG_FORMAT_RGB;
  Decoded decoded;
  decoded.width = image.width;
  decoded.height = image.height;
  decoded.rgb.resize(PNG_IMAGE_SIZE(image));
  if (png_image_finish_read(&image, nullptr, decoded.rgb.data(), 0, nullptr) == 0) {
    throw std::runtime_error(image.message);
  }
  return decoded;
}

/// Number of pixels of one color and their mean position.
struct Patch {
  std::int64_t n = 0;
  double x = 0, y = 0;
};
inline Patch patch_of(const Decoded& picture, Rgb color) {
  Patch patch;
  for (std::int64_t y = 0; y < picture.height; ++y) {
    for (std::int64_t x = 0; x < picture.width; ++x) {
      if (!(picture.at(x, y) == color)) continue;
      ++patch.n;
      patch.x += static_cast<double>(x);
      patch.y += static_cast<double>(y);
    }
  }
  if (patch.n > 0) {
    patch.x /= static_cast<double>(patch.n);
    patch.y /= static_cast<double>(patch.n);
  }
  return patch;
}

}  // namespace ryle::plot::test
