// SPDX-License-Identifier: BSD-3-Clause
// From sums of products to calibrated planes.
#include <cmath>
#include <limits>

#include "ryle/core/units.hpp"
#include "ryle/engine/image/reference.hpp"

namespace ryle::image::detail {
namespace {

std::vector<std::uint8_t> rises(const AllSkyConfig& config) {
  std::vector<std::uint8_t> above;
  for (const auto& [l, m, n] : config.directions) above.push_back(n > 0);
  if (!config.directions.empty()) return above;
  const ArrayPlane plane = fit_plane(config);
  for (std::int64_t y = 0; y < config.n_pixels; ++y) {
    for (std::int64_t x = 0; x < config.n_pixels; ++x) {
      const auto direction =
          direction_of_pixel(config, plane, static_cast<double>(x), static_cast<double>(y));
      above.push_back(direction[2] > 0);
    }
  }
  return above;
}

double mean(double sum, double weight) { return weight > 0 ? sum / weight : kNaN; }

}  // namespace

std::vector<std::int64_t> used_elements(const AllSkyConfig& config, std::span<const cf32> gains) {
  std::vector<std::int64_t> elements;
  for (std::size_t i = 0; i < config.inputs.size(); ++i) {
    const auto& input = config.inputs[i];
    const bool used = !input.bad && std::isfinite(gains[i].real()) &&
                      std::isfinite(gains[i].imag()) && gains[i] != cf32(0);
    elements.push_back(used ? input.antenna * n_pols(config) + input.pol : -1);
  }
  return elements;
}

void write_images(const AllSkyConfig& config, const std::vector<ProductPlanes>& planes,
                  const std::vector<double>& weights, std::int64_t n_spectra, Images& images) {
  const auto size = static_cast<std::size_t>(plane_size(config));
  const auto n = static_cast<std::size_t>(n_planes(config));
  const auto above = rises(config);
  images.pixels.assign(planes.size() * n * size, std::numeric_limits<float>::quiet_NaN());
  images.weights = weights;
  images.n_spectra = n_spectra;
  for (std::size_t bin = 0; bin < planes.size(); ++bin) {
    for (std::size_t pixel = 0; pixel < size; ++pixel) {
      if (!above[pixel]) continue;
      const double xx = mean(planes[bin].xx[pixel], weights[3 * bin]);
      const double yy = mean(planes[bin].yy[pixel], weights[3 * bin + 1]);
      const double re = mean(planes[bin].xy[pixel].real(), weights[3 * bin + 2]);
      const double im = mean(planes[bin].xy[pixel].imag(), weights[3 * bin + 2]);
      const bool stokes = config.products != Products::linear;
      const std::array<double, 4> values{stokes ? (xx + yy) / 2 : xx, stokes ? (xx - yy) / 2 : yy,
                                         re, im};
      for (std::size_t plane = 0; plane < n; ++plane) {
        images.pixels[(bin * n + plane) * size + pixel] =
            static_cast<float>(n_pols(config) == 1 ? xx : values[plane]);
      }
    }
  }
}

}  // namespace ryle::image::detail
