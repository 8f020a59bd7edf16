// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ryle/engine/calibrate/delays.hpp"
#include "ryle/engine/calibrate/screen.hpp"
#include "ryle/io/visibility/gain_file.hpp"
#include "ryle/io/visibility/visibility_file.hpp"
#include "ryle/pipeline/config/config.hpp"

namespace ryle::pipeline {

/// An input that has no gain, and why.
struct DroppedInput {
  std::int64_t antenna = 0;
  std::string name;  ///< of the antenna
  std::string set;   ///< polarization, "" of one
  calibrate::Dropped why = calibrate::Dropped::no;
  double ratio = 0;  ///< of its row power, or of its gain, to the median
};
/// "dead: 0.02 x the median", ...
std::string reason_text(const DroppedInput& dropped);

/// What was found of one set of gains: a polarization, or both.
struct GainSetReport {
  std::string name;
  double source_fraction = 0;      ///< of the system power, before solving; 0 = not known
  double predicted_sigma_deg = 0;  ///< median over inputs and solutions, before solving
  bool full_bound = false;         ///< else of independent noise: the file says no sample counts
  double sigma_deg = 0;            ///< median, of the gains that were found
  double phase_rms_deg = 0;        ///< of the gains about their mean phase
  double amplitude_rms = 0;        ///< relative, of the gains about their mean
  double halves_deg = 0;  ///< error of the gains from two halves of the baselines, rms over inputs
  double noise = 0;       ///< median of w |V - g conj(g) M|^2; 1 = that of the samples
  /// Share of the power of the visibilities that is neither model nor noise; 0 where the noise is
  /// not known.
  double unexplained = 0;
  int max_rounds = 0;
  std::int64_t n_solutions = 0, n_converged = 0;
  std::int64_t n_without_data = 0;       ///< solutions whose channels are flagged throughout
  std::int64_t n_inputs = 0;             ///< with a gain
  std::vector<calibrate::Delay> delays;  ///< of each antenna, of three channels or more
};

struct CalibrateReport {
  GainTable table;
  std::vector<GainSetReport> sets;
  std::vector<DroppedInput> dropped;
  std::vector<std::pair<std::string, double>>
      flux_factors;  ///< found / model, where they were fitted
  std::string implementation;
  std::string reference;  ///< name of the antenna whose phase is 0
  std::vector<std::string> notes, warnings;
};

/// Gains of the antennas of visibilities from a model of the sky: inputs that are wild, dead or do
/// not see the model are left out and named, the error is predicted before anything is solved.
/// Throws FormatError (exit 65) where it would be above max_sigma_deg, with the number of spectra
/// that would do, where fewer than 4 inputs or 60 % of those with data are left, and where nothing
/// converges; ConfigError where no source is up. @param channels of a solution, 0 = all
CalibrateReport calibrate_visibilities(const CalibrateConfig& settings, const VisibilityFile& file,
                                       std::int64_t channels, int n_workers);

/// The report without the gains as one JSON object without line breaks.
std::string to_json(const CalibrateReport& report, const std::vector<std::string>& products);

/// Amplitude, phase and residual of the gains: over antennas and channels, or over antennas where
/// there is one solution. Ending as of write_picture().
void write_gain_picture(const std::string& path, const CalibrateReport& report, bool overwrite);

}  // namespace ryle::pipeline
