// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

namespace ryle::search::detail {

/// Middle value (upper one of an even number); 0 of none. Reorders.
inline double median_of(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Mean of the two middle values of an even number, the middle one of an odd: what is subtracted
/// must not depend on which of them it is (the upper one of 16 lies 0.08 of their scatter above).
inline double balanced_median_of(std::vector<double>& values) {
  const double upper = median_of(values);
  if (values.empty() || values.size() % 2 == 1) return upper;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  return 0.5 * (*std::max_element(values.begin(), middle) + upper);
}

/// 1.4826 x median absolute deviation from `center`.
inline double scatter_of(std::vector<double> values, double center) {
  for (auto& v : values) v = std::abs(v - center);
  return 1.4826 * median_of(values);
}

/// P_0 .. P_degree at n points from -1 to 1. @shape [point][degree + 1]
std::vector<double> legendre_basis(std::size_t n, int degree);

}  // namespace ryle::search::detail
