// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/calibrate/screen.hpp"

#include <algorithm>
#include <cmath>

namespace ryle::calibrate {
namespace {

/// 0 of nothing.
double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double median_above_zero(const std::vector<double>& values) {
  std::vector<double> some;
  for (const double v : values)
    if (v > 0) some.push_back(v);
  return median_of(std::move(some));
}

}  // namespace

std::vector<double> pair_powers(const Equations& e) {
  const std::int64_t n = e.n_inputs();
  std::vector<double> powers(n * n);
  for (std::int64_t a = 0; a < n; ++a) {
    for (std::int64_t b = 0; b < n; ++b) {
      double sum = 0, weight = 0;
      for (std::int64_t s = 0; s < e.n_solutions() && a != b; ++s) {
        sum += e.pair_power(s, a, b);
        weight += e.pair_weight(s, a, b);
      }
      powers[a * n + b] = weight > 0 ? sum / weight : 0;
    }
  }
  return powers;
}

Screened screen(const std::vector<double>& powers, const ScreenLimits& limits) {
  const auto n =
      static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(powers.size()))));
  Screened result;
  result.dropped.assign(n, Dropped::no);
  result.ratio.assign(n, 0);
  const auto rows = [&] {
    std::vector<double> row(n);
    for (std::int64_t a = 0; a < n; ++a) {
      double sum = 0, count = 0;
      for (std::int64_t b = 0; b < n; ++b) {
        if (result.dropped[b] != Dropped::no || !(powers[a * n + b] > 0)) continue;
        sum += powers[a * n + b];
        ++count;
      }
      if (result.dropped[a] == Dropped::no && count > 0) row[a] = sum / count;
    }
    return row;
  };
  while (true) {
    const auto row = rows();
    const double median = median_above_zero(row);
    const auto wildest = std::max_element(row.begin(), row.end()) - row.begin();
    if (median > 0 && row[wildest] > limits.above * median) {
      result.dropped[wildest] = Dropped::high_power;
      result.ratio[wildest] = row[wildest] / median;
      continue;
    }
    for (std::int64_t a = 0; a < n; ++a) {
      if (result.dropped[a] != Dropped::no) continue;
      result.ratio[a] = median > 0 ? row[a] / median : 0;
      if (!(row[a] > 0)) result.dropped[a] = Dropped::no_data;
      if (row[a] > 0 && row[a] < limits.below * median) result.dropped[a] = Dropped::low_power;
    }
    return result;
  }
}

Screened incoherent(const Solutions& g, double below) {
  std::vector<double> amplitude(g.n_inputs);
  for (std::int64_t a = 0; a < g.n_inputs; ++a) {
    std::vector<double> some;
    for (std::int64_t s = 0; s < g.n_solutions; ++s)
      if (!g.is_flagged(s, a)) some.push_back(std::abs(g.gains[g.at(s, a)]));
    amplitude[a] = median_of(std::move(some));
  }
  const double median = median_above_zero(amplitude);
  Screened result;
  for (const double v : amplitude) {
    result.ratio.push_back(median > 0 ? v / median : 0);
    result.dropped.push_back(v > 0 && v < below * median ? Dropped::no_coherence : Dropped::no);
  }
  return result;
}

}  // namespace ryle::calibrate
