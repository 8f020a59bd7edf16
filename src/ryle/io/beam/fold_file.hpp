// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

/// A folded pulsar as FITS tables:
///   SUBINT  TSTART, TSTOP (s from the first sample), SUM, COUNT [channel][bin] of each
///           sub-integration, channels each at their own phase (dispersion taken out)
///   CHANNEL FREQ (MHz), MEAN, RMS of the samples
///   PROFILE PHASE (turns), MEAN (of all channels in units of their rms), SNR
namespace ryle {

struct FoldedPulsar {
  std::string source, telescope, file;
  std::string ephemeris;  ///< name of the .par file; "" = a topocentric period
  double start_mjd_utc = 0;
  double period_s = 0;                   ///< topocentric, mean over the data
  double shortest_s = 0, longest_s = 0;  ///< periods that were searched; 0 = only that one
  bool at_edge = false;  ///< of them: chi2 is higher beyond, the period is not the best one
  double dm_pc_cm3 = 0, k_dm = 0;
  double reduced_chi2 = 0;
  std::string command_line;
  std::int64_t n_bins = 0;
  std::vector<double> begin_s, end_s;        ///< [sub-integration]
  std::vector<double> center_hz;             ///< [channel], ascending; phases hold at the last
  std::vector<double> mean, rms;             ///< [channel]
  std::vector<float> sums;                   ///< [sub-integration][channel][bin]
  std::vector<std::uint32_t> counts;         ///< [sub-integration][channel][bin]
  std::vector<double> profile, profile_snr;  ///< [bin]
};

/// Published by rename. Throws IoError.
void write_fold_fits(const std::string& path, const FoldedPulsar& fold, bool overwrite);

}  // namespace ryle
