// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <limits>
#include <string>
#include <vector>

#include "ryle/io/visibility/visibility_file.hpp"

namespace ryle {

/// A covariance matrix as two FITS images (real and imaginary part, [row antenna a][column antenna
/// b]), as the EDA2 writes them, and what the files themselves do not say. The upper triangle is
/// V_ab = <v_a conj(v_b)>, a < b, or its conjugate; the lower is used where the upper is NaN or 0.
/// NaN or exactly 0 = not measured; the diagonal is no autocorrelation there and is left out.
struct CovarianceFiles {
  std::string real_path;
  std::string imaginary_path;
  std::string
      antennas_path;  ///< lines "name east north height" in metres, in matrix order, '#' comments
  double frequency_hz = 0;      ///< required
  double channel_width_hz = 0;  ///< 0 = not known
  double latitude_deg =
      std::numeric_limits<double>::quiet_NaN();  ///< required, as is the longitude
  double longitude_deg = std::numeric_limits<double>::quiet_NaN();
  double height_m = 0;
  /// ISO; empty = from a file name with YYYYMMDD_HHMMSS or YYYYMMDDTHHMMSS, perhaps with fractions.
  std::string utc;
  double integration_s = 0;          ///< 0 = not known
  std::string pol;                   ///< "X", "Y", "I"; empty = not known, imaged as I
  std::string phased_to = "zenith";  ///< "zenith", "sun" or "RA_DEG,DEC_DEG"
  std::vector<std::string> dead;     ///< antennas to leave out, by name or number from 0
  /// automatic: the way round in which the Sun stands where it was, which must be up and stand out;
  /// both give equally good images (conventions.md 5), so nothing else in the file can tell.
  Conjugate conjugate = Conjugate::automatic;
};

/// What was used and why begins with this among the notes of the provenance.
inline constexpr char kCovarianceNote[] = "covariance ";

/// UTC in a file name with YYYYMMDD_HHMMSS or YYYYMMDDTHHMMSS, perhaps with fractions, as ISO; ""
/// without one.
std::string utc_of_file_name(const std::string& path);

/// One dump, one pol, one channel; an antenna without any value is marked bad. Notes of the
/// provenance say which sign, time, polarization, width and antennas were used, and why. Throws
/// ConfigError for what is missing in `files` or when the Sun cannot tell, FormatError for wrong
/// sizes, IoError for missing files.
VisibilityFile read_covariance(const CovarianceFiles& files);

}  // namespace ryle
