// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/telescope/observation.hpp"

namespace ryle {

/// Gains of the antennas of an array over a band, and how they were found.
/// @eq v_recorded = g v_sky, V_ij = g_i conj(g_j) V_sky,ij: calibration divides
/// @shape gains, flags, sigma_rad, sigma_amplitude, chi2 [antenna][channel][pol]
struct GainTable {
  Observation observation;        ///< of the data they are from: array, site, provenance
  std::int64_t n_pols = 1;        ///< X, or X and Y
  std::vector<double> center_hz;  ///< [channel] of what shares a gain
  std::vector<double> width_hz;   ///< [channel]
  std::int64_t start_tai_ns = 0;  ///< of the data
  std::int64_t middle_tai_ns = 0;
  double interval_s = 0;
  std::vector<cf64> gains;                         ///< 1 where flagged
  std::vector<std::uint8_t> flags;                 ///< 1 = no gain
  std::vector<double> sigma_rad, sigma_amplitude;  ///< amplitude: relative; 0 where flagged
  std::vector<double> chi2;
  std::int64_t reference_antenna = 0;
  std::string model;      ///< sources and what is known of their fluxes
  std::string flux_unit;  ///< of calibrated data: "Jy", or "" where amplitudes are relative

  std::int64_t n_channels() const { return static_cast<std::int64_t>(center_hz.size()); }
  std::size_t at(std::int64_t antenna, std::int64_t channel, std::int64_t pol) const {
    return static_cast<std::size_t>((antenna * n_channels() + channel) * n_pols + pol);
  }
};

/// Note of visibilities that gains were divided out of: the table.
inline constexpr const char* kGainsAppliedNote = "gains_applied";
/// The table that was divided out of these visibilities, "" of none.
std::string gains_applied(const Observation& observation);

/// What visibilities of one polarization are of: "XX", "YY" or "I".
std::string lone_polarization(const Observation& observation);
/// The polarization of a table of one: "XX", "YY" or "I"; "" of X and Y.
std::string gain_polarization(const GainTable& table);

/// SHA-256 of gains as CalH5 holds them, flags, frequencies and antenna names: what products call
/// the table. A table that is read has the id of the one that was written.
std::string gain_table_id(const GainTable& table);

/// Throws ConfigError for a name that ends neither in .csv nor in .h5, .hdf5 or .calh5.
void require_gain_suffix(const std::string& path, const std::string& option);

/// By the ending of the name:
/// .h5, .hdf5, .calh5: CalH5 of pyuvdata, gain_convention "divide". pyuvdata's visibilities are
/// conj(V_ij), so that the gains in the file are conj(g); the group Ryle holds what CalH5 has no
/// place for.
/// .csv: input,amplitude,phase_deg,flag in the order of the inputs of the array, as
/// read_gains_csv() takes it: the mean over the channels; flag = 1 of an input without a gain.
/// Throws IoError, and FormatError for a CSV of gains that turn over the band.
void write_gain_table(const std::string& path, const GainTable& table, bool overwrite);

/// CalH5 of Ryle or of others: one time, gains of X and Y in any order, or of one of them. Throws
/// FormatError for what is not, UnsupportedError for other Jones terms, IoError.
GainTable read_gain_table(const std::string& path);

}  // namespace ryle
