// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/image/reference.hpp"

namespace ryle::image::detail {

/// A cyclic grid of G x G cells.
/// @eq transformed()[p] = sum_j cell[j] exp(2 pi i j.(p - G/2) / G)
class ReferenceGrid {
 public:
  explicit ReferenceGrid(std::int64_t g) : g_(g), cells_(g * g) {}
  void add(std::int64_t y, std::int64_t x, cf64 value);
  /// @shape [y][x]
  std::vector<cf64> transformed() const;

 private:
  std::int64_t g_;
  std::vector<cf64> cells_;
};

/// Adds transformed grids divided by the taper; taper has one plane, or [XX, YY, XY].
void add_tapered(const ReferenceGrid& xx, const ReferenceGrid& yy, const ReferenceGrid& xy,
                 const std::vector<double>& taper, ProductPlanes& planes);

}  // namespace ryle::image::detail
