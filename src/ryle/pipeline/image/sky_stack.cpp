// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/image/sky_stack.hpp"

#include "ryle/core/units.hpp"

#include <cmath>
#include <limits>

namespace ryle::pipeline {
namespace {

/// Keys's cubic convolution, a = -1/2, for the neighbours -1, 0, 1, 2 of a fraction.
std::array<double, 4> cubic_weights(double f) {
  return {((-0.5 * f + 1) * f - 0.5) * f, (1.5 * f - 2.5) * f * f + 1,
          ((-1.5 * f + 2) * f + 0.5) * f, (0.5 * f - 0.5) * f * f};
}

double cubic(std::span<const float> pixels, std::int64_t n, std::int64_t x, std::int64_t y,
             double fx, double fy) {
  const auto wx = cubic_weights(fx);
  const auto wy = cubic_weights(fy);
  double value = 0;
  for (std::int64_t j = 0; j < 4; ++j) {
    for (std::int64_t i = 0; i < 4; ++i) {
      value += wy[j] * wx[i] * static_cast<double>(pixels[(y + j - 1) * n + x + i - 1]);
    }
  }
  return value;
}

double bilinear(std::span<const float> pixels, std::int64_t n, std::int64_t x, std::int64_t y,
                double fx, double fy) {
  double value = 0;
  for (std::int64_t j = 0; j < 2; ++j) {
    for (std::int64_t i = 0; i < 2; ++i) {
      const double w = (j == 0 ? 1 - fy : fy) * (i == 0 ? 1 - fx : fx);
      if (w > 0) value += w * static_cast<double>(pixels[(y + j) * n + x + i]);
    }
  }
  return value;
}

/// Weight of a plane: that of XX and YY for sums of both, of XY* for the cross planes.
double plane_weight(const image::AllSkyConfig& sky, const double* pairs, std::int64_t plane) {
  if (image::n_planes(sky) == 1) return pairs[0] + pairs[1];
  if (plane >= 2) return pairs[2];
  if (sky.products == image::Products::linear) return pairs[plane];
  return pairs[0] + pairs[1];
}

}  // namespace

float interpolate(std::span<const float> pixels, std::int64_t n, double x, double y) {
  const auto ix = static_cast<std::int64_t>(std::floor(x));
  const auto iy = static_cast<std::int64_t>(std::floor(y));
  if (ix < 0 || iy < 0 || ix + 1 >= n || iy + 1 >= n) return kNaN;
  const double fx = x - static_cast<double>(ix);
  const double fy = y - static_cast<double>(iy);
  if (ix >= 1 && iy >= 1 && ix + 2 < n && iy + 2 < n) {
    const double value = cubic(pixels, n, ix, iy, fx, fy);
    if (std::isfinite(value)) return static_cast<float>(value);
  }
  return static_cast<float>(bilinear(pixels, n, ix, iy, fx, fy));
}

SkyStack::SkyStack(const image::AllSkyConfig& sky, const image::ArrayPlane& plane)
    : sky_(sky), plane_(plane) {}

void SkyStack::add(const image::Images& images, const std::array<Vector3, 3>& axes) {
  const std::int64_t n = sky_.n_pixels;
  const std::int64_t n_planes = image::n_planes(sky_);
  const std::int64_t n_images = image::n_bins(sky_) * n_planes;
  const auto size = static_cast<std::size_t>(n * n);
  sum_.resize(static_cast<std::size_t>(n_images) * size);
  weight_.resize(sum_.size());
  pair_weights_.resize(images.weights.size());
  for (std::size_t k = 0; k < images.weights.size(); ++k) pair_weights_[k] += images.weights[k];
  image::ArrayPlane level;  // the frame is not slanted
  for (std::int64_t y = 0; y < n; ++y) {
    for (std::int64_t x = 0; x < n; ++x) {
      const auto out =
          image::direction_of_pixel(sky_, level, static_cast<double>(x), static_cast<double>(y));
      if (std::isnan(out[2])) continue;
      std::array<double, 3> enu{};
      for (std::size_t k = 0; k < 3; ++k)
        enu[k] = out[0] * axes[0][k] + out[1] * axes[1][k] + out[2] * axes[2][k];
      if (enu[2] <= 0) continue;
      const auto pixel = image::pixel_of_direction(sky_, plane_, enu);
      const auto at = static_cast<std::size_t>(y * n + x);
      for (std::int64_t k = 0; k < n_images; ++k) {
        const std::size_t base = static_cast<std::size_t>(k) * size;
        const double w = plane_weight(
            sky_, images.weights.data() + static_cast<std::size_t>(k / n_planes) * 3, k % n_planes);
        const float value = interpolate({images.pixels.data() + base, size}, n, pixel[0], pixel[1]);
        if (!(w > 0) || std::isnan(value)) continue;
        sum_[base + at] += w * static_cast<double>(value);
        weight_[base + at] += w;
      }
    }
  }
  ++n_images_;
  n_spectra_ += images.n_spectra;
}

image::Images SkyStack::finish() {
  image::Images result;
  result.pixels.resize(sum_.size());
  for (std::size_t k = 0; k < sum_.size(); ++k) {
    result.pixels[k] = weight_[k] > 0 ? static_cast<float>(sum_[k] / weight_[k]) : kNaN;
  }
  result.weights = pair_weights_;
  result.n_spectra = n_spectra_;
  sum_.clear();
  weight_.clear();
  pair_weights_.clear();
  n_images_ = 0;
  n_spectra_ = 0;
  return result;
}

}  // namespace ryle::pipeline
