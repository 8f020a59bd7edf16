// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/plot/color.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace ryle::plot {
namespace {

using Knot = std::array<double, 3>;

// Evenly spaced colors; lightness rises steadily (viridis, inferno) or runs once down and up
// (twilight).
constexpr Knot kViridis[] = {{68, 2, 85},    {71, 45, 123},  {58, 82, 139},
                             {44, 114, 142}, {33, 145, 140}, {40, 174, 127},
                             {95, 201, 97},  {173, 220, 48}, {253, 231, 37}};
constexpr Knot kInferno[] = {{1, 0, 6},      {32, 12, 74},   {88, 16, 110},
                             {138, 34, 106}, {188, 55, 84},  {228, 90, 49},
                             {249, 142, 10}, {249, 203, 53}, {252, 255, 165}};
constexpr Knot kTwilight[] = {{226, 217, 226}, {167, 193, 205}, {110, 153, 190}, {96, 101, 181},
                              {88, 49, 146},   {47, 20, 55},    {112, 30, 84},   {164, 69, 80},
                              {196, 121, 97},  {211, 176, 159}, {226, 217, 226}};
constexpr Knot kPolar[] = {{166, 214, 255}, {72, 146, 218}, {34, 84, 142},
                           {20, 40, 70},    {14, 15, 20},   {68, 28, 18},
                           {146, 62, 30},   {226, 118, 52}, {255, 206, 150}};
constexpr Knot kGray[] = {{0, 0, 0}, {255, 255, 255}};

std::span<const Knot> knots_of(ColorMap map) {
  switch (map) {
    case ColorMap::inferno:
      return kInferno;
    case ColorMap::twilight:
      return kTwilight;
    case ColorMap::gray:
      return kGray;
    case ColorMap::polar:
      return kPolar;
    case ColorMap::viridis:
      break;
  }
  return kViridis;
}

// Cubic through the knots (Catmull-Rom): no visible bend at a knot, as straight segments would
// show.
double interpolate(double a, double b, double c, double d, double t) {
  return b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
}

}  // namespace

Rgb color_at(ColorMap map, double position) {
  const auto knots = knots_of(map);
  const auto last = static_cast<std::ptrdiff_t>(knots.size()) - 1;
  const double place = std::clamp(position, 0.0, 1.0) * static_cast<double>(last);
  const auto k = std::min(static_cast<std::ptrdiff_t>(place), last - 1);
  const bool cyclic = map == ColorMap::twilight;
  const auto knot = [&](std::ptrdiff_t i, std::size_t channel) {
    if (i >= 0 && i <= last) return knots[i][channel];
    if (cyclic) return knots[i < 0 ? last - 1 : 1][channel];
    const std::ptrdiff_t end = i < 0 ? 0 : last,
                         inner = i < 0 ? 1 : last - 1;  // straight on beyond the ends
    return 2 * knots[end][channel] - knots[inner][channel];
  };
  std::array<std::uint8_t, 3> rgb{};
  for (std::size_t c = 0; c < 3; ++c) {
    const double value = interpolate(knot(k - 1, c), knot(k, c), knot(k + 1, c), knot(k + 2, c),
                                     place - static_cast<double>(k));
    rgb[c] = static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0, 255.0)));
  }
  return {rgb[0], rgb[1], rgb[2]};
}

}  // namespace ryle::plot
