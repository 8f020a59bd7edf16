// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cpu/directions.hpp"

#include <algorithm>

#include "ryle/core/units.hpp"

namespace ryle::image::detail {

CpuDirections::CpuDirections(const AllSkyConfig& config, const CpuRoles& roles,
                             const CpuOutput& output)
    : n_blocks_((output.size() + kDirectionsPerBlock - 1) / kDirectionsPerBlock) {
  const ArrayPlane plane = fit_plane(config);
  for (std::int64_t s = 0; s < n_blocks_ * kDirectionsPerBlock; ++s) {
    const std::int64_t sky = std::min(s, output.size() - 1);
    const std::int64_t p = output.pixels()[sky];
    const auto direction =
        config.directions.empty()
            ? direction_of_pixel(config, plane, static_cast<double>(p % config.n_pixels),
                                 static_cast<double>(p / config.n_pixels))
            : config.directions[p];
    l_.push_back(direction[0]);
    m_.push_back(direction[1]);
    t_.push_back(direction[2]);
  }
  for (const std::int32_t a : roles.antennas) {
    for (const double v : config.antenna_enu_m[a]) enu_m_.push_back(v);
  }
}

std::vector<double> CpuDirections::waves(double frequency_hz) const {
  std::vector<double> waves;
  waves.reserve(enu_m_.size());
  for (const double v : enu_m_) waves.push_back(v * frequency_hz / kSpeedOfLight_m_per_s);
  return waves;
}

}  // namespace ryle::image::detail
