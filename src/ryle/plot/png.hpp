// SPDX-License-Identifier: BSD-3-Clause
// Pictures to PNG files. Private to plot/.
#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace ryle::plot {

/// PNG of 8-bit RGB, in memory. @shape rgb [height][width][3]
std::string png_of(std::int64_t width, std::int64_t height, std::span<const std::uint8_t> rgb);

}  // namespace ryle::plot
