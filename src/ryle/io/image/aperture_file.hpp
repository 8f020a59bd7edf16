// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/core/samples.hpp"

namespace ryle {

/// Antenna apertures on square grids of one step. @shape values [aperture][row][column], row =
/// north ascending, column = east ascending, the antenna at (n/2, n/2)
struct ApertureFile {
  double step_m = 0;
  std::int64_t n = 0;
  std::int64_t n_apertures = 0;
  std::vector<cf64> values;
};

/// FITS, primary image. Axes as FITS counts them, the fastest first: east, north, [2: real and
/// imaginary], aperture; without the axis of 2 (NAXIS 3) the apertures are real. CDELT1 = CDELT2 is
/// the step in metres. As NumPy sees it: [aperture][2][n][n] or [aperture][n][n].
/// Throws IoError, FormatError.
ApertureFile read_aperture_file(const std::string& path);

}  // namespace ryle
