// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/io/visibility/gain_file.hpp"
#include "ryle/io/visibility/visibility_file.hpp"

namespace ryle::pipeline {

/// A table of gains for this observation, by the ending of the file: CalH5, or the CSV of
/// calibration.gains, whose gains hold over the whole band. Throws ConfigError, FormatError,
/// IoError.
GainTable gains_for(const std::string& path, const Observation& observation);

struct AppliedGains {
  std::string table_id;
  std::int64_t n_values = 0;   ///< divided
  std::int64_t n_flagged = 0;  ///< had data, and a gain is missing: flagged now
  std::vector<std::string> warnings;
};

/// Divides visibilities by gains. Antennas are found by name, and by number where a table has no
/// names; channels by the channel of the table that holds them. @eq V_ij / (g_i conj(g_j));
/// of Stokes I by a table of X and Y the mean of both products of gains. The unit becomes that of
/// the table, "uncalibrated" of a relative one. Notes the table in the provenance. Throws
/// ConfigError where a table was applied before, for an antenna or a polarization that the table
/// lacks, and for a channel outside of its band.
AppliedGains apply_gains(VisibilityFile& file, const GainTable& table);

}  // namespace ryle::pipeline
