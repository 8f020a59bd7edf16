// SPDX-License-Identifier: BSD-3-Clause
// What a map shows of a cell's sums, on host and device. Private to the engine.
#pragma once
#include <cstdint>

#include "ryle/engine/grid/cuda/host_device.hpp"
#include "ryle/engine/grid/grid.hpp"

namespace ryle::grid::detail {

inline constexpr double kMinShare = 0.1;  ///< of |w u v| that may be left beside negative lobes

RYLE_HD inline bool shows(double count, double weight, double magnitude, std::int64_t min_count,
                          double min_weight) {
  const auto minimum = static_cast<double>(min_count > 1 ? min_count : 1);
  return count >= minimum && weight >= min_weight && weight > 0 && weight >= kMinShare * magnitude;
}

}  // namespace ryle::grid::detail
