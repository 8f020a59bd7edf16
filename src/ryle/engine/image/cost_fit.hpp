// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <vector>

/// Costs per operation from timed runs.
namespace ryle::image {

/// A run: operations of every kind and the seconds they took together.
struct TimedRun {
  std::vector<double> operations;
  double seconds = 0;
};

/// Seconds per operation of every kind that predict the runs best, in relative terms.
/// @eq minimize sum_i ( sum_j n_ij c_j / t_i - 1 )^2,  c_j within kMaxOff of s c0_j
/// c0 are expected costs and s the one factor that suits the runs best: when noise makes the runs
/// contradict each other, what cannot be told apart keeps the expected proportion; no cost is ever
/// negative, 0 or absurd. Runs without a positive, finite time are left out; without any good run
/// the expected costs come back.
std::vector<double> fit_costs(const std::vector<TimedRun>& runs,
                              const std::vector<double>& expected_s);

/// How far a fitted cost may lie from the expected one, after the common factor.
inline constexpr double kMaxOff = 8;

}  // namespace ryle::image
