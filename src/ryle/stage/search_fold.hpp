// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/engine/search/fold.hpp"
#include "ryle/product/filterbank_file.hpp"

/// Folding of a time series or a filterbank at a known period.
namespace ryle::stage {

struct FoldOptions {
  std::string file;
  FilterbankOptions input;
  double period_s = 0;  ///< topocentric, at the first sample
  double period_derivative = 0;
  double dm_pc_cm3 = 0;  ///< of a filterbank
  std::string k_dm = "physical";
  std::int64_t n_bins = 128;
  bool search = true;  ///< over periods that drift by up to `drift_turns` within the file
  double drift_turns = 0.5;
  std::string text;     ///< profile: phase, mean, S/N of a bin; "" = not written
  std::string picture;  ///< PNG
  bool overwrite = false;
  std::string command_line;
};

struct FoldSummary {
  search::Fold fold;
  double period_s = 0;
  double reduced_chi2 = 0;
  double duration_s = 0;
  std::int64_t n_samples = 0;
  std::string source_name;
  double start_mjd_utc = 0;
  std::vector<std::string> products, warnings;
};

FoldSummary fold_file(const FoldOptions& options);

}  // namespace ryle::stage
