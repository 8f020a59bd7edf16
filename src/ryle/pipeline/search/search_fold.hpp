// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/engine/search/fold.hpp"
#include "ryle/io/beam/filterbank_file.hpp"
#include "ryle/pipeline/search/search_fold_products.hpp"

/// Folding of a time series or a filterbank at a known period, or by an ephemeris.
namespace ryle::pipeline {

struct FoldOptions {
  std::string file;
  FilterbankOptions input;
  std::string par;      ///< ephemeris (.par); the telescope's place by its name in the file
  double period_s = 0;  ///< instead of it: topocentric, at the first sample
  double period_derivative = 0;
  double dm_pc_cm3 = 0;  ///< of a filterbank; 0 with an ephemeris = its DM
  std::string k_dm = "physical";
  std::int64_t n_bins = 128;
  bool search = true;  ///< over periods that drift by up to `drift_turns` within the file
  double drift_turns = 0.5;
  FoldOutputs outputs;
  std::string command_line;
};

struct FoldSummary {
  search::Fold fold;
  double period_s = 0;                   ///< topocentric, mean over the data
  double predicted_period_s = 0;         ///< of the ephemeris; 0 = there was none
  double shortest_s = 0, longest_s = 0;  ///< periods that were searched; 0 = only that one
  bool at_edge = false;  ///< of them: the best period may lie beyond, a warning says so
  double reduced_chi2 = 0;
  double duration_s = 0;
  std::int64_t n_samples = 0;
  std::string source_name;
  double start_mjd_utc = 0;
  std::vector<std::string> products, warnings;
};

FoldSummary fold_file(const FoldOptions& options);

}  // namespace ryle::pipeline
