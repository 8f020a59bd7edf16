// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "ryle/core/random.hpp"
#include "ryle/engine/search/dispersion.hpp"

namespace ryle::test {

inline search::Band small_band() {
  search::Band band;
  band.channel_width_hz = 20e6 / 64;
  for (int c = 0; c < 64; ++c) band.center_hz.push_back(398e6 + (c + 0.5) * band.channel_width_hz);
  band.sample_interval_s = 1e-3;
  return band;
}

/// Adds a pulse of a given S/N of the band sum in noise of rms 10, fwhm 4 samples.
/// @shape data [channel][n], n samples between channels
inline void add_pulse(const search::Band& band, float* data, std::int64_t n, double tick, double dm,
                      double snr) {
  const double sigma = 4 / 2.3548;
  const double amplitude = snr / std::sqrt(64 / (2 * std::sqrt(3.14159265) * sigma)) /
                           (sigma * std::sqrt(2 * 3.14159265));
  for (std::int64_t c = 0; c < band.n_channels(); ++c) {
    const double at = tick + band.delay_samples(c, dm);
    for (auto t = static_cast<std::int64_t>(at) - 12; t < static_cast<std::int64_t>(at) + 12; ++t) {
      const double z = (static_cast<double>(t) - at) / sigma;
      if (t >= 0 && t < n)
        data[c * n + t] += static_cast<float>(10 * amplitude * std::exp(-0.5 * z * z));
    }
  }
}

/// Gaussian noise, mean 100, rms 10, with a pulse.
inline std::vector<float> noise_with_pulse(const search::Band& band, std::int64_t n, double tick,
                                           double dm, double snr, std::uint64_t seed) {
  std::vector<float> data(static_cast<std::size_t>(band.n_channels() * n));
  for (std::size_t k = 0; k < data.size(); ++k)
    data[k] = static_cast<float>(100 + 10 * gaussian(combine(seed, static_cast<std::uint64_t>(k))));
  add_pulse(band, data.data(), n, tick, dm, snr);
  return data;
}

}  // namespace ryle::test
