// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>

#include "ryle/core/random.hpp"
#include "ryle/engine/search/dispersion.hpp"
#include "ryle/engine/search/search.hpp"

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

/// Sums of n_outputs samples at these dispersion measures, of codes up to max_code.
inline DedisperseConfig plan_of(const Band& band, const std::vector<double>& dms, int max_code,
                                std::int64_t n_outputs) {
  DedisperseConfig config;
  config.n_channels = band.n_channels();
  config.n_trials = static_cast<std::int64_t>(dms.size());
  config.delays = delay_table(band, dms);
  config.max_code = max_code;
  config.max_outputs = n_outputs;
  return config;
}

}  // namespace ryle::search::test
