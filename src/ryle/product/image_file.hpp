// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>
#include <vector>

#include "ryle/telescope/observation.hpp"

namespace ryle {

/// One image plane set. @shape pixels [stokes][channel][y][x]; NaN below the horizon
struct SkyImage {
  std::int64_t n_pixels = 0;
  std::int64_t n_channels = 1;
  std::vector<int> stokes{1};  ///< FITS STOKES codes: 1 I, 2 Q, 3 U, 4 V, -5 XX, -6 YY, ...
  std::vector<float> pixels;
  double cell_direction_cosine = 0;  ///< |CDELT| in direction cosines (SIN projection)
  SkyDirection center;               ///< ICRS of pixel (N/2, N/2) at the time of the data
  FrequencyAxis frequency;
  std::int64_t start_tai_ns = 0;
  std::int64_t centroid_tai_ns = 0;
  double exposure_s = 0;
  std::string unit = "uncalibrated";
};

/// FITS image, SIN projection, ICRS, CHECKSUM; fitsverify and astropy accept it without a warning
/// (products.md 3).
void write_fits_image(const std::string& path, const SkyImage& image,
                      const Observation& observation, bool overwrite);

}  // namespace ryle
