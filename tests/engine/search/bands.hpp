// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>

#include "ryle/core/random.hpp"
#include "ryle/engine/search/dispersion.hpp"

namespace ryle::search::test {

inline Band band_of(double low_edge_mhz, double width_mhz, std::int64_t n_channels,
                    double interval_s) {
  Band band;
  band.channel_width_hz = width_mhz * 1e6 / static_cast<double>(n_channels);
  for (std::int64_t c = 0; c < n_channels; ++c)
    band.center_hz.push_back(low_edge_mhz * 1e6 +
                             (static_cast<double>(c) + 0.5) * band.channel_width_hz);
  band.sample_interval_s = interval_s;
  return band;
}

/// The block of Magro 2014.
inline Band best2_band(std::int64_t n_channels = 1024) {
  return band_of(398, 20, n_channels, 51.2e-6);
}

}  // namespace ryle::search::test
