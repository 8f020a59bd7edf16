// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/calibrate/calibrate.hpp"

namespace ryle::calibrate {

/// Why an input is left out of a solution.
enum class Dropped : std::uint8_t {
  no,
  no_data,      ///< no value at all, or flagged before
  low_power,    ///< less correlated power than the others: dead
  high_power,   ///< more: one wild input rules every sum and the solution diverges
  no_coherence  ///< does not see the model: opposite sideband, swapped, another clock, wrong place
};

struct ScreenLimits {
  double below = 0.3, above = 3;  ///< of the median row power
};

struct Screened {
  std::vector<Dropped> dropped;  ///< [input]
  std::vector<double> ratio;     ///< [input] of the row power to the median when it was judged
};

/// Mean |V_ab|^2 of the pairs over all solutions, 0 = no data. @shape [a][b]
std::vector<double> pair_powers(const Equations& equations);

/// Inputs whose row power, the mean of |V_ab|^2 over b before any gain, is outside of the limits
/// times the median of those with data. A wild input is in every row: the wildest is left out
/// first, and the rows of the others are looked at again without it. @shape pair_powers [a][b]
Screened screen(const std::vector<double>& pair_powers, const ScreenLimits& limits);

/// Inputs that were solved but whose gains are weak against those of the others, in the median over
/// the solutions: below `below` of the median amplitude of an input. Meant for visibilities whose
/// rows are divided by the root of their autocorrelations. @shape [input]
Screened incoherent(const Solutions& solutions, double below);

}  // namespace ryle::calibrate
