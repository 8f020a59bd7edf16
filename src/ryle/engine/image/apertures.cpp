// SPDX-License-Identifier: BSD-3-Clause
// User apertures: complex voltage patterns of single antennas, sampled on the cells of a channel.
#include <cmath>
#include <complex>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/image/geometry.hpp"

namespace ryle::image {
namespace {

cf64 value_or_zero(const Aperture& aperture, std::int64_t column, std::int64_t row) {
  if (column < 0 || row < 0 || column >= aperture.n || row >= aperture.n) return 0;
  return aperture.values[row * aperture.n + column];
}

// Bilinear between the samples, 0 outside. East and north of the antenna, metres.
cf64 sampled(const Aperture& aperture, double east_m, double north_m) {
  const double centre = static_cast<double>(aperture.n / 2);
  const double x = centre + east_m / aperture.step_m, y = centre + north_m / aperture.step_m;
  const double x0 = std::floor(x), y0 = std::floor(y);
  const double fx = x - x0, fy = y - y0;
  const auto column = static_cast<std::int64_t>(x0), row = static_cast<std::int64_t>(y0);
  return (1 - fy) * ((1 - fx) * value_or_zero(aperture, column, row) +
                     fx * value_or_zero(aperture, column + 1, row)) +
         fy * ((1 - fx) * value_or_zero(aperture, column, row + 1) +
               fx * value_or_zero(aperture, column + 1, row + 1));
}

std::vector<cf64> weights_of(const AllSkyConfig& config, const Aperture& aperture,
                             const AntennaCells& cells, const std::array<double, 2>& position,
                             double cell_m, std::int64_t antenna) {
  const std::int64_t k = config.function.support;
  std::vector<cf64> weights;
  cf64 sum = 0;
  double size = 0;
  for (std::int64_t y = 0; y < k; ++y) {
    for (std::int64_t x = 0; x < k; ++x) {
      // Cells grow to the south (geometry.hpp), apertures to the north.
      const double east_m = (static_cast<double>(cells.first_x + x) - position[0]) * cell_m;
      const double south_m = (static_cast<double>(cells.first_y + y) - position[1]) * cell_m;
      weights.push_back(sampled(aperture, east_m, -south_m));
      sum += weights.back();
      size += std::abs(weights.back());
    }
  }
  if (!(std::abs(sum) > 1e-6 * size)) {
    throw ConfigError("aperture of antenna " + std::to_string(antenna) +
                      " sums to zero on its grid cells of " + std::to_string(cell_m) +
                      " m: it is narrower than a cell or has no gain at zenith; give a smaller "
                      "cell_wavelengths or an aperture at least two cells wide");
  }
  for (auto& w : weights) w /= sum;
  return weights;
}

}  // namespace

std::vector<std::vector<cf64>> aperture_weights(const AllSkyConfig& config, std::int64_t channel) {
  const auto cells = antenna_cells(config, channel);
  const auto positions = antenna_positions_cells(config, channel);
  const double cell_m =
      config.cell_wavelengths * kSpeedOfLight_m_per_s / config.channels.center_hz(channel);
  const std::int64_t pols = n_pols(config);
  std::vector<std::vector<cf64>> weights;
  for (std::size_t a = 0; a < cells.size(); ++a) {
    for (std::int64_t pol = 0; pol < pols; ++pol) {
      const auto& aperture =
          config.function
              .apertures[a * static_cast<std::size_t>(pols) + static_cast<std::size_t>(pol)];
      weights.push_back(weights_of(config, aperture, cells[a], positions[a], cell_m,
                                   static_cast<std::int64_t>(a)));
    }
  }
  return weights;
}

}  // namespace ryle::image
