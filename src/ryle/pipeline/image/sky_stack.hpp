// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ryle/engine/image/geometry.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle::pipeline {

/// Images of a few seconds, stacked in a frame that is fixed to the stars: SIN about an ICRS
/// centre, north up, not slanted, the pixel size of the images.
/// @eq out(l, m) = sum_i w_i in_i(x_i(l, m), y_i(l, m)) / sum_i w_i
/// The value between pixels is a cubic convolution (Keys 1981, a = -1/2) whose 16 weights sum to 1
/// for every offset, as those of the bilinear rule do: sums over a source are kept. Bilinear at the
/// edge of the horizon; the nearest pixel where even that is not possible is NaN.
class SkyStack {
 public:
  /// `sky`, `plane`: of the images to come.
  SkyStack(const image::AllSkyConfig& sky, const image::ArrayPlane& plane);

  /// Adds images taken at an instant. `axes`: rows l, m, s_0 of the frame in east, north, up at
  /// that instant (uvw_axes). Weights as image::Images.
  void add(const image::Images& images, const std::array<Vector3, 3>& axes);
  /// Mean, weights summed; forgets everything.
  image::Images finish();
  std::int64_t n_images() const { return n_images_; }

 private:
  image::AllSkyConfig sky_;
  image::ArrayPlane plane_;
  std::vector<double> sum_, weight_;  // [bin][plane][y][x]
  std::vector<double> pair_weights_;  // [bin][3]
  std::int64_t n_images_ = 0;
  std::int64_t n_spectra_ = 0;
};

/// Value of an image between pixels; NaN outside and where a neighbour that counts is NaN.
float interpolate(std::span<const float> pixels, std::int64_t n, double x, double y);

}  // namespace ryle::pipeline
