// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cuda/all_sky_host.hpp"

#include <cmath>
#include <limits>

#include "ryle/core/units.hpp"
#include "ryle/engine/image/geometry.hpp"
#include "ryle/engine/image/weights.hpp"

namespace ryle::image::detail {
namespace {

std::int32_t first_cell(double point, int support) {
  return static_cast<std::int32_t>(std::floor(point - 0.5 * support)) + 1;
}

template <class Body>
void for_baselines(std::int64_t n_antennas, bool autos, Body&& body) {
  std::size_t baseline = 0;
  for (std::int64_t b = 0; b < n_antennas; ++b) {
    for (std::int64_t a = 0; a < b + (autos ? 1 : 0); ++a) body(baseline++, a, b);
  }
}

}  // namespace

ArrayOfUsed used_array(const AllSkyConfig& config) {
  const auto used = antennas_used(config);
  std::vector<std::int32_t> input(2 * used.size(), -1);
  for (std::size_t i = 0; i < config.inputs.size(); ++i) {
    const auto& role = config.inputs[i];
    if (role.bad) continue;
    // One polarization may be either: it takes the place of X, as in the reference.
    const auto pol = static_cast<std::size_t>(role.pol);
    input[2 * static_cast<std::size_t>(role.antenna) + pol] = static_cast<std::int32_t>(i);
  }
  ArrayOfUsed array;
  for (std::size_t a = 0; a < used.size(); ++a) {
    if (!used[a]) continue;
    array.antenna.push_back(static_cast<std::int64_t>(a));
    array.input.push_back(input[2 * a]);
    array.input.push_back(input[2 * a + 1]);
  }
  return array;
}

std::vector<float> factors(const AllSkyConfig& config, const ArrayOfUsed& array,
                           std::span<const cf32> gains, bool heights) {
  std::vector<float> out;
  const auto n_inputs = config.inputs.size();
  for (std::int64_t channel = 0; channel < config.channels.n_channels; ++channel) {
    const double nu_hz = config.channels.center_hz(channel);
    for (std::size_t a = 0; a < array.antenna.size(); ++a) {
      const double up_m = config.antenna_enu_m[array.antenna[a]][2];
      const cf64 height = heights ? height_phase(nu_hz, up_m) : cf64(1);
      for (std::size_t pol = 0; pol < 2; ++pol) {
        const auto i = array.input[2 * a + pol];
        cf64 factor = 0;
        if (i >= 0) {
          const auto n = static_cast<std::size_t>(i);
          const cf32 gain = gains[static_cast<std::size_t>(channel) * n_inputs + n];
          if (is_used(config.inputs[n], gain)) factor = cf64(gain) * height;
        }
        out.push_back(static_cast<float>(factor.real()));
        out.push_back(static_cast<float>(factor.imag()));
      }
    }
  }
  return out;
}

std::vector<double> pairs_per_spectrum(const AllSkyConfig& config, std::span<const cf32> gains) {
  AllSkyConfig each = config;
  each.n_channels_per_bin = 1;
  std::vector<double> pairs(3 * static_cast<std::size_t>(config.channels.n_channels));
  add_vis_weights(each, gains, nullptr, 1, pairs);
  return pairs;
}

std::vector<double> positions_cells(const AllSkyConfig& config, const ArrayOfUsed& array) {
  std::vector<double> out;
  for (std::int64_t channel = 0; channel < config.channels.n_channels; ++channel) {
    const auto positions = antenna_positions_cells(config, channel);
    for (const auto a : array.antenna) {
      out.push_back(positions[a][0]);
      out.push_back(positions[a][1]);
    }
  }
  return out;
}

std::vector<std::uint8_t> flips(const ArrayOfUsed& array, const std::vector<double>& positions,
                                bool autos) {
  std::vector<std::uint8_t> out;
  const auto n = static_cast<std::int64_t>(array.antenna.size());
  for_baselines(n, autos, [&](std::size_t, std::int64_t a, std::int64_t b) {
    const double* p = &positions[2 * a];
    const double* q = &positions[2 * b];
    const double dx = p[0] - q[0], dy = p[1] - q[1];
    out.push_back(dy < 0 || (dy == 0 && dx < 0) ? 1 : 0);
  });
  return out;
}

std::vector<Footprint> baseline_footprints(const ArrayOfUsed& array, const double* positions,
                                           const std::vector<std::uint8_t>& flips, bool autos,
                                           int support, bool correlated) {
  std::vector<Footprint> out(flips.size());
  const auto n = static_cast<std::int64_t>(array.antenna.size());
  for_baselines(n, autos, [&](std::size_t baseline, std::int64_t a, std::int64_t b) {
    const bool flip = flips[baseline] != 0;
    const double* p = positions + 2 * (flip ? b : a);
    const double* q = positions + 2 * (flip ? a : b);
    const auto first = [&](int axis) {
      if (!correlated) return first_cell(p[axis] - q[axis], support);
      return first_cell(p[axis], support) - first_cell(q[axis], support) - (support - 1);
    };
    out[baseline] = {first(0), first(1)};
  });
  return out;
}

std::vector<Footprint> antenna_footprints(const ArrayOfUsed& array, const double* positions,
                                          int support) {
  std::vector<Footprint> out;
  for (std::size_t a = 0; a < array.antenna.size(); ++a) {
    out.push_back(
        {first_cell(positions[2 * a], support), first_cell(positions[2 * a + 1], support)});
  }
  return out;
}

std::vector<float> aperture_table(const AllSkyConfig& config, const ArrayOfUsed& array) {
  std::vector<float> out;
  const auto pols = static_cast<std::size_t>(n_pols(config));
  for (std::int64_t channel = 0; channel < config.channels.n_channels; ++channel) {
    const auto weights = aperture_weights(config, channel);
    for (const std::int64_t antenna : array.antenna) {
      const std::size_t x = static_cast<std::size_t>(antenna) * pols;
      for (std::size_t r = 0; r < weights[x].size(); ++r) {
        for (const cf64 w : {weights[x][r], pols == 2 ? weights[x + 1][r] : cf64(0)}) {
          out.push_back(static_cast<float>(w.real()));
          out.push_back(static_cast<float>(w.imag()));
        }
      }
    }
  }
  return out;
}

std::vector<std::int32_t> baseline_antennas(const ArrayOfUsed& array,
                                            const std::vector<std::uint8_t>& flips, bool autos) {
  std::vector<std::int32_t> out;
  const auto n = static_cast<std::int64_t>(array.antenna.size());
  for_baselines(n, autos, [&](std::size_t baseline, std::int64_t a, std::int64_t b) {
    const bool flip = flips[baseline] != 0;
    out.push_back(static_cast<std::int32_t>(flip ? b : a));
    out.push_back(static_cast<std::int32_t>(flip ? a : b));
  });
  return out;
}

int n_tapers(const AllSkyConfig& config) {
  return config.function.apertures.empty() || n_pols(config) == 1 ? 1 : 3;
}

std::vector<float> above_horizon(const AllSkyConfig& config) {
  std::vector<float> above;
  for (const auto& direction : config.directions) above.push_back(direction[2] > 0 ? 1.0f : kNaN);
  if (!config.directions.empty()) return above;
  const ArrayPlane plane = fit_plane(config);
  for (std::int64_t y = 0; y < config.n_pixels; ++y) {
    for (std::int64_t x = 0; x < config.n_pixels; ++x) {
      const auto direction =
          direction_of_pixel(config, plane, static_cast<double>(x), static_cast<double>(y));
      above.push_back(direction[2] > 0 ? 1.0f : kNaN);
    }
  }
  return above;
}

std::vector<float> inverse_taper(const AllSkyConfig& config, const std::vector<double>& taper) {
  const std::vector<float> above = above_horizon(config);
  std::vector<float> out(taper.size(), kNaN);
  for (std::size_t p = 0; p < out.size(); ++p) {
    if (!std::isnan(above[p % above.size()])) out[p] = static_cast<float>(1 / taper[p]);
  }
  return out;
}

}  // namespace ryle::image::detail
