// SPDX-License-Identifier: BSD-3-Clause
// The convolution function of one cell and one sample, in double. Private to the engine.
#pragma once
#include "ryle/engine/grid/convolution.hpp"

namespace ryle::grid::detail {

/// K of two unit vectors [3] that lie `chord` apart, with the bearing of the sample seen from the
/// cell (grid.md 1).
double pair_value(const Convolution& function, const double* cell, const double* sample,
                  double chord);

/// Of a Gaussian beam to a source at a distance from its center.
float beam_response(double beam_fwhm_rad, double chord);

}  // namespace ryle::grid::detail
