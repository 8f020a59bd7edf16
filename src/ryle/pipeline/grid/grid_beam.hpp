// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>

#include "ryle/engine/grid/grid.hpp"
#include "ryle/io/scan/scan_file.hpp"

namespace ryle::pipeline {

/// A telescope's beam and where it was found. @unit rad
struct BeamFound {
  double fwhm_rad = 0;  ///< 0: not found
  std::string from;     ///< "1.22 wavelengths at 1420.4 MHz over the 300 m of FAST"
};

/// 1.22 wavelengths in the middle of the band over a known dish.
BeamFound beam_of_telescope(const std::string& telescope, const FrequencyAxis& frequency);

/// 2.4 times the spacing at which samples fill their field: a beam sampled at its critical spacing.
BeamFound beam_of_spacing(const grid::Positions& samples);

/// The spacing at which samples fill the field: the side of the smallest cells of which neighbours
/// are hit, with fewer than 5 in 100 gaps along rows and along columns. Where the field ends,
/// between two fields, and within a track that bends nothing is missing. 0: cannot be said, as of
/// one track. @unit rad
double sampling_interval(const grid::Positions& samples);

}  // namespace ryle::pipeline
