// SPDX-License-Identifier: BSD-3-Clause
// The weighted median of a list without sorting it. Private to the engine.
#pragma once
#include <cstdint>

namespace ryle::grid::detail {

struct OrderItem {
  float x;
  std::uint32_t weight;  ///< above 0
};

/// The smallest x whose cumulative weight reaches half of `sum`, with the next one averaged where
/// it is half exactly. `items` is overwritten; `room` holds 2 n more.
/// @pre n > 0, sum is that of the weights
double weighted_median(OrderItem* items, std::int64_t n, std::uint64_t sum, OrderItem* room);

}  // namespace ryle::grid::detail
