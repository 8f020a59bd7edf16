// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cost_fit.hpp"

#include <algorithm>
#include <cmath>

namespace ryle::image {
namespace {

/// Rows of the least squares: shares of the time at the expected costs. @shape [run][kind]
using Rows = std::vector<std::vector<double>>;

Rows shares_of(const std::vector<TimedRun>& runs, const std::vector<double>& expected_s) {
  Rows rows;
  for (const auto& run : runs) {
    if (!std::isfinite(run.seconds) || !(run.seconds > 0)) continue;
    std::vector<double> row;
    for (std::size_t j = 0; j < expected_s.size(); ++j) {
      row.push_back(run.operations[j] * expected_s[j] / run.seconds);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// Geometric mean of measured over expected: a run that was disturbed counts no more than another.
double common_factor(const Rows& rows) {
  double sum = 0;
  for (const auto& row : rows) {
    double expected = 0;
    for (const double x : row) expected += x;
    sum -= std::log(expected);
  }
  return std::exp(sum / static_cast<double>(rows.size()));
}

}  // namespace

std::vector<double> fit_costs(const std::vector<TimedRun>& runs,
                              const std::vector<double>& expected_s) {
  const Rows rows = shares_of(runs, expected_s);
  if (rows.empty()) return expected_s;
  const double s = common_factor(rows);
  std::vector<double> factor(expected_s.size(), s);
  // One factor at a time, each the best within its bounds: the sum is convex, this converges.
  const double minimum = s / kMaxOff, maximum = s * kMaxOff;
  for (int round = 0; round < 2000; ++round) {
    for (std::size_t j = 0; j < factor.size(); ++j) {
      double top = 0, bottom = 0;
      for (const auto& row : rows) {
        double rest = 1;
        for (std::size_t i = 0; i < factor.size(); ++i) rest -= i == j ? 0 : row[i] * factor[i];
        top += row[j] * rest;
        bottom += row[j] * row[j];
      }
      if (bottom > 0) factor[j] = std::clamp(top / bottom, minimum, maximum);
    }
  }
  for (std::size_t j = 0; j < factor.size(); ++j) factor[j] *= expected_s[j];
  return factor;
}

}  // namespace ryle::image
