// SPDX-License-Identifier: BSD-3-Clause
// Convolution functions of the angle alone, as a table of cubics. Private to the engine.
#pragma once
#include <vector>

#include "ryle/engine/grid/convolution.hpp"

namespace ryle::grid::detail {

inline constexpr int kRadialIntervals = 4096;
/// What a table may differ from its function by, of K(0) = 1 (grid.md 2).
inline constexpr double kRadialError = 1e-6;

/// K as a function of theta^2, in cubics through values and slopes at the ends of each interval.
/// @shape [kRadialIntervals][4], lowest power first, argument 0 .. 1 in the interval
/// Empty where no such table comes within kRadialError: rows of a user's table that lie closer
/// than the intervals, with a bend at each. Then every pair asks the function itself.
std::vector<float> radial_table(const Convolution& function);

}  // namespace ryle::grid::detail
