// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>
#include <vector>

namespace ryle::plot {

/// Ticks of an axis: round values inside [from, to] (either order) with labels of equal precision.
struct Ticks {
  std::vector<double> values;
  std::vector<std::string> labels;
  std::vector<double> minor;  ///< unlabelled, between
  int exponent = 0;           ///< labels are to be read times 10^exponent (0 for everyday numbers)
};
/// Steps 1, 2, 5 times a power of ten (or 30, 45, 90 for an axis in degrees of phase), at most
/// `maximum` labels.
Ticks ticks_between(double from, double to, int maximum, bool degrees = false);

}  // namespace ryle::plot
