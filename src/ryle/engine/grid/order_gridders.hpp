// SPDX-License-Identifier: BSD-3-Clause
// Private to the engine: what makes medians, and the weights both ways of it round alike.
#pragma once
#include <cmath>
#include <cstdint>
#include <memory>

#include "ryle/engine/grid/order_statistics.hpp"

namespace ryle::grid::detail {

inline constexpr int kWeightBits = 24;

/// A weight in units of 2^-24 of the power of two above the largest one within reach.
inline std::uint32_t rounded_weight(double weight, int largest_exponent) {
  return static_cast<std::uint32_t>(
      std::nearbyint(std::ldexp(weight, kWeightBits - largest_exponent)));
}

/// Sorts all there is in reach of a cell, as the equations say.
std::unique_ptr<OrderGridder> make_order_reference(const OrderConfig& config, Cells cells);
/// Tiles over workers; selects instead of sorting.
std::unique_ptr<OrderGridder> make_order_selection(const OrderConfig& config, Cells cells);

}  // namespace ryle::grid::detail
