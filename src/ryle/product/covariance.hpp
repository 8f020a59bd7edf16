// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <limits>
#include <string>

#include "ryle/product/visibility_file.hpp"

namespace ryle {

/// A covariance matrix as two FITS images (real and imaginary part, [row antenna a][column antenna
/// b]), as the EDA2 writes them, and what the files themselves do not say. The upper triangle is
/// V_ab = <v_a conj(v_b)>, a < b; the lower is used where the upper is NaN. NaN = flagged; the
/// diagonal is no autocorrelation there and is left out.
struct CovarianceFiles {
  std::string real_path;
  std::string imaginary_path;
  std::string
      antennas_path;  ///< lines "name east north height" in metres, in matrix order, '#' comments
  double frequency_hz = 0;  ///< required
  double channel_width_hz =
      400e6 / 512 * 32 / 27;  ///< of an oversampled coarse channel of the EDA2
  double latitude_deg =
      std::numeric_limits<double>::quiet_NaN();  ///< required, as is the longitude
  double longitude_deg = std::numeric_limits<double>::quiet_NaN();
  double height_m = 0;
  std::string utc;           ///< ISO; empty = from a file name that starts with YYYYMMDD_HHMMSS
  double integration_s = 0;  ///< 0 = not known
  /// automatic: the way round in which the Sun, which must be up, stands where it was; both give
  /// equally good images (conventions.md 5), so nothing else in the file can tell.
  Conjugate conjugate = Conjugate::automatic;
};

/// One dump, one pol, one channel, phased to the zenith; an antenna without any value is marked
/// bad. Throws ConfigError for what is missing in `files` or when the Sun cannot tell, FormatError
/// for wrong sizes, IoError for missing files.
VisibilityFile read_covariance(const CovarianceFiles& files);

}  // namespace ryle
