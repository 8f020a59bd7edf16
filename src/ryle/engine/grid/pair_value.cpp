// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/pair_value.hpp"

#include <cmath>

namespace ryle::grid::detail {

double pair_value(const Convolution& f, const double* cell, const double* sample, double chord) {
  const double theta = 2 * std::asin(0.5 * chord);
  if (is_radial(f)) return value(f, theta, theta, 0);
  const double across = std::hypot(cell[0], cell[1]);
  const double ex = across < 1e-12 ? 1 : -cell[1] / across,
               ey = across < 1e-12 ? 0 : cell[0] / across;
  const double e = ex * sample[0] + ey * sample[1];
  const double n = -cell[2] * ey * sample[0] + cell[2] * ex * sample[1] +
                   (cell[0] * ey - cell[1] * ex) * sample[2];
  const double length = std::hypot(e, n);
  const double scale = length > 0 ? theta / length : 0;
  return value(f, theta, scale * e, scale * n);
}

float beam_response(double beam_fwhm_rad, double chord) {
  const double theta = 2 * std::asin(0.5 * chord);
  return static_cast<float>(std::exp2(-4 * (theta / beam_fwhm_rad) * (theta / beam_fwhm_rad)));
}

}  // namespace ryle::grid::detail
