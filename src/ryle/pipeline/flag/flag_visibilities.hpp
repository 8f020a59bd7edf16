// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ryle/telescope/observation.hpp"

namespace ryle::pipeline {

struct FlagOptions {
  bool row_power = true;     ///< flag inputs by their correlated power, as calibrate::screen()
  double power_below = 0.3;  ///< of the median, per polarization
  double power_above = 3;
  bool sum_threshold = true;
  double threshold_sigmas = 6;
  std::int64_t max_window = 64;
  std::string implementation = "auto";
  int n_workers = 0;  ///< threads; 0 = one a core
  /// Called from the calling thread with the fraction done; false stops the work.
  std::function<bool(double done)> go_on{};
};

/// An input that was flagged as a whole.
struct FlaggedInput {
  std::string antenna;
  int pol = 0;       ///< 0 = X, 1 = Y
  double ratio = 0;  ///< its row power over the median; 0 = it has no values
};

struct FlagReport {
  std::vector<FlaggedInput> inputs;
  std::int64_t n_values = 0;
  std::int64_t n_before = 0;  ///< without values or flagged in the file
  std::int64_t n_inputs = 0;  ///< values flagged with their input
  std::int64_t n_interference = 0;
  std::vector<double> channel_fraction;  ///< of values with data, flagged as interference
  std::string implementation;
  std::vector<std::string> notes;
};

/// Flags visibilities in place: inputs outside of the limits (their inputs become bad), then
/// interference on every baseline and polarization. Flagged values are 0 with a count of 0. Throws
/// FormatError where nothing is unflagged, Error (exit 75) when options.go_on stopped it.
FlagReport flag_visibilities(Observation& observation, std::span<VisibilityDump> dumps,
                             const FlagOptions& options);

}  // namespace ryle::pipeline
