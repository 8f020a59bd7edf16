// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/engine/grid/convolution.hpp"

namespace ryle::grid {

/// What a point source looks like on a map of fully sampled data: the telescope's beam, a Gaussian
/// of FWHM b, convolved with the function.
struct OutputBeam {
  double major_rad = 0, minor_rad = 0;  ///< full widths at half maximum
  double position_angle_rad = 0;        ///< of the major axis, north through east
  /// Solid angle of this beam over the telescope's = 1 / (peak of a unit point source): multiplies
  /// values per beam.
  double area_factor = 1;
  double n_beams = 0;  ///< (sum w)^2 / sum w^2 in solid angles of the telescope's beam
};

/// @eq P(r) = int K(u) B(r - u) du / int K(u) du over |u| < R; FWHM: P = P(0) / 2;
/// area factor = 1 / P(0)   (grid.md 2)
/// Throws ConfigError for a beam that is not positive or a function whose weights sum to 0 or less.
OutputBeam output_beam(const Convolution& convolution, double beam_fwhm_rad);

}  // namespace ryle::grid
