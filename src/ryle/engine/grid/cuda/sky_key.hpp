// SPDX-License-Identifier: BSD-3-Clause
// Places on the sphere as integers: a cube's six faces, each a quadtree of equal angles. Neighbours
// on the sky are mostly neighbours among keys, and the parts of the sphere near a tile are found by
// walking down the tree. Poles and the seam of longitude are places like any other. Private to the
// engine.
#pragma once
#include <cmath>
#include <cstdint>

#include "ryle/engine/grid/cuda/host_device.hpp"

namespace ryle::grid::detail {

/// Levels of the tree: leaves of 0.33 arcmin, keys of 31 bits.
inline constexpr int kMaxOrder = 14;
inline constexpr std::uint32_t kFaces = 6;

/// Bits 0 .. 15 go to bits 0, 2, 4, ...
RYLE_HD inline std::uint32_t spread_bits(std::uint32_t v) {
  v = (v | v << 8) & 0x00ff00ffU;
  v = (v | v << 4) & 0x0f0f0f0fU;
  v = (v | v << 2) & 0x33333333U;
  return (v | v << 1) & 0x55555555U;
}
RYLE_HD inline std::uint32_t join_bits(std::uint32_t v) {
  v &= 0x55555555U;
  v = (v | v >> 1) & 0x33333333U;
  v = (v | v >> 2) & 0x0f0f0f0fU;
  v = (v | v >> 4) & 0x00ff00ffU;
  return (v | v >> 8) & 0x0000ffffU;
}

/// Which of `n` equal angles of a face a ratio of components in [-1, 1] falls into.
RYLE_HD inline std::uint32_t leaf_of(double ratio, std::uint32_t n) {
  constexpr double kPerQuarter = 1.2732395447351627;  // 4 / pi
  const double place = (std::atan(ratio) * kPerQuarter + 1) * 0.5 * static_cast<double>(n);
  if (!(place > 0)) return 0;
  const auto leaf = static_cast<std::uint32_t>(place);
  return leaf < n ? leaf : n - 1;
}

/// Of a unit vector. @pre not NaN, 0 <= order <= kMaxOrder
RYLE_HD inline std::uint32_t sky_key(double x, double y, double z, int order) {
  const double ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  std::uint32_t face = 0;
  double out = x, a = y, b = z;
  if (ax < ay || ax < az) {
    if (ay >= az) {
      face = 2;
      out = y;
      a = z;
      b = x;
    } else {
      face = 4;
      out = z;
      a = x;
      b = y;
    }
  }
  if (out < 0) ++face;
  const std::uint32_t n = 1U << order;
  return face << (2 * order) | spread_bits(leaf_of(a / out, n)) |
         spread_bits(leaf_of(b / out, n)) << 1;
}

/// A part of a face: everything in it is within `radius` (a chord) of `center`.
struct SkyNode {
  double center[3];
  double radius;
};

/// Unit vector at angles u, v of a face, -1 .. 1 from edge to edge.
RYLE_HD inline void face_direction(std::uint32_t face, double u, double v, double* to) {
  constexpr double kQuarter = 0.78539816339744831;  // pi / 4
  const double a = std::tan(u * kQuarter), b = std::tan(v * kQuarter);
  const double out =
      (face & 1U) != 0 ? -1 / std::sqrt(1 + a * a + b * b) : 1 / std::sqrt(1 + a * a + b * b);
  const std::uint32_t axis = face / 2;
  to[axis] = out;
  to[(axis + 1) % 3] = a * out;
  to[(axis + 2) % 3] = b * out;
}

/// Node `code` = face, then two bits a level. Sides are great circles, so that a corner is
/// farthest.
RYLE_HD inline SkyNode sky_node(std::uint32_t code, int level) {
  const std::uint32_t face = code >> (2 * level);
  const std::uint32_t within = code & ((1U << (2 * level)) - 1);
  const double side = 2.0 / static_cast<double>(1U << level);
  const double u = -1 + side * (join_bits(within) + 0.5),
               v = -1 + side * (join_bits(within >> 1) + 0.5);
  SkyNode node{};
  face_direction(face, u, v, node.center);
  double far2 = 0;
  for (int corner = 0; corner < 4; ++corner) {
    double p[3];
    face_direction(face, u + ((corner & 1) != 0 ? 0.5 : -0.5) * side,
                   v + ((corner & 2) != 0 ? 0.5 : -0.5) * side, p);
    double d2 = 0;
    for (int i = 0; i < 3; ++i) d2 += (p[i] - node.center[i]) * (p[i] - node.center[i]);
    far2 = d2 > far2 ? d2 : far2;
  }
  node.radius = std::sqrt(far2) * (1 + 1e-9) + 1e-14;  // keys are rounded, too
  return node;
}

}  // namespace ryle::grid::detail
