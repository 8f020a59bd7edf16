// SPDX-License-Identifier: BSD-3-Clause
// A sky of points seen by an array, evaluated straight from conventions.md 5: used by tests/io
// and tests/peers.
#pragma once
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "ryle/core/baseline.hpp"
#include "ryle/core/units.hpp"
#include "ryle/telescope/observation.hpp"

namespace ryle::test {

/// A point with Stokes I Q U V in Jy.
struct Source {
  SkyDirection direction;
  double i = 1, q = 0, u = 0, v = 0;
};

/// Direction cosines of a direction about a centre: l east, m north, n.
inline Vector3 direction_cosines(const SkyDirection& s, const SkyDirection& c) {
  const double d = s.ra_rad - c.ra_rad;
  return {std::cos(s.dec_rad) * std::sin(d),
          std::sin(s.dec_rad) * std::cos(c.dec_rad) -
              std::cos(s.dec_rad) * std::sin(c.dec_rad) * std::cos(d),
          std::sin(s.dec_rad) * std::sin(c.dec_rad) +
              std::cos(s.dec_rad) * std::cos(c.dec_rad) * std::cos(d)};
}

/// Its inverse for given (l, m).
inline SkyDirection direction_of(double l, double m, const SkyDirection& c) {
  const double n = std::sqrt(1 - l * l - m * m);
  return {c.ra_rad + std::atan2(l, n * std::cos(c.dec_rad) - m * std::sin(c.dec_rad)),
          std::asin(m * std::cos(c.dec_rad) + n * std::sin(c.dec_rad))};
}

inline constexpr std::int64_t kStart_tai_ns =
    1'769'900'437'250'000'123;  // 2026-01-31, not on a round number

struct Shape {
  std::int64_t n_antennas = 8;
  std::int64_t n_channels = 4;
  std::int64_t n_pols = 2;
  double radius_m = 60;
  double first_hz = 150e6;
  double width_hz = 40e3;
};

/// Antennas scattered (seeded) over a slightly tilted disc near the MWA; phase centre 3 degrees off
/// the zenith.
inline Observation make_observation(const Shape& shape) {
  Observation o;
  std::mt19937_64 random(20260131);
  std::uniform_real_distribution<double> uniform(-1, 1);
  o.array.name = "RYLESIM";
  o.array.latitude_rad = -26.70331940 * kDegree_rad;
  o.array.longitude_rad = 116.67081524 * kDegree_rad;
  o.array.height_m = 377.83;
  while (o.array.n_antennas() < shape.n_antennas) {
    const double east = uniform(random), north = uniform(random), up = uniform(random);
    if (east * east + north * north > 1) continue;
    Antenna& antenna = o.array.antennas.emplace_back();
    antenna.name = "Tile" + std::to_string(o.array.n_antennas() + 10);
    antenna.enu_m = {east * shape.radius_m, north * shape.radius_m, up * 0.01 * shape.radius_m};
  }
  for (std::int64_t a = 0; a < shape.n_antennas; ++a) {
    for (int pol = 0; pol < shape.n_pols; ++pol) {
      ArrayInput& input = o.array.inputs.emplace_back();
      input.antenna = a;
      input.pol = pol;
      input.cable_delay_s = 1e-9 * static_cast<double>(a);
      input.feed_angle_rad = kPi / 2;  // X lies east-west, as the MWA's
    }
  }
  o.frequency = {shape.first_hz, shape.width_hz, shape.n_channels};
  const SkyDirection up = zenith(o.array, kStart_tai_ns);
  o.phase_center = direction_of(0.03, -0.04, up);
  o.phase_center_name = "field A";
  o.object = "simulated sky";
  o.observer = "ryle tests";
  o.nominal_dump_s = 2;
  o.spectrum_interval_s = 2.0 / 50000;
  o.channel_bandwidth_hz = shape.width_hz * 0.9;
  o.flux_unit = "Jy";
  o.applied.filter_response = {0.1, 0.7, 0.7, 0.1};
  o.applied.n_taps = 4;
  o.applied.window = "hamming";
  o.applied.van_vleck = true;
  for (std::size_t k = 0; k < o.array.inputs.size(); ++k) {
    o.applied.delay_s.push_back(1e-9 * static_cast<double>(k) + 1e-17);
    o.applied.input_rms_lsb.push_back(2.5 + 0.01 * static_cast<double>(k));
    o.applied.saturated_fraction.push_back(1e-4);
    for (std::int64_t c = 0; c < shape.n_channels; ++c) {
      o.applied.gains.emplace_back(1 + 0.001 * static_cast<double>(k),
                                   0.1 * static_cast<double>(c));
    }
  }
  o.provenance.command_line = "ryle simulate BMAJ=1 --quietly";
  o.provenance.configuration = "[correlate]\nintegration_s = 2.0  # \xc3\xa9\nBMAJ = 3\n";
  o.provenance.configuration_sha256 = std::string(64, 'a');
  o.provenance.host = "testhost";
  o.provenance.implementations = {"correlate/cpu/avx2", "channelize/reference"};
  o.provenance.notes = {{"loss_ppm", "12"}, {"time source", "packet"}};
  return o;
}

/// Noise-free visibilities of a sky at dump `index`. @eq V = sum S exp(+2 pi i [u l + v m + w
/// (n-1)])
inline VisibilityDump make_dump(const Observation& o, const std::vector<Source>& sky,
                                std::int64_t index) {
  VisibilityDump d;
  d.n_channels = o.frequency.n_channels;
  d.n_baselines = n_pairs(o.array.n_antennas());
  d.n_pol_products = o.array.n_pols() * o.array.n_pols();
  d.interval_s = o.nominal_dump_s;
  d.n_spectra = 50000;
  d.start_tai_ns = kStart_tai_ns + index * static_cast<std::int64_t>(o.nominal_dump_s * 1e9);
  d.centroid_tai_ns = d.start_tai_ns + static_cast<std::int64_t>(o.nominal_dump_s * 0.5e9) + 77;
  const auto size = static_cast<std::size_t>(d.n_channels * d.n_baselines * d.n_pol_products);
  d.data.resize(size);
  d.counts.assign(size, 50000);
  const auto axes = uvw_axes(o.array, o.phase_center, d.centroid_tai_ns, o.earth_orientation);
  for (std::int64_t b = 0; b < d.n_baselines; ++b) {
    const auto [i, j] = pair_of(b);
    const Vector3& ri = o.array.antennas[static_cast<std::size_t>(i)].enu_m;
    const Vector3& rj = o.array.antennas[static_cast<std::size_t>(j)].enu_m;
    Vector3 uvw_m{};
    for (std::size_t k = 0; k < 3; ++k) {
      for (std::size_t m = 0; m < 3; ++m) uvw_m[k] += axes[k][m] * (ri[m] - rj[m]);
    }
    for (std::int64_t c = 0; c < d.n_channels; ++c) {
      cf64 stokes[4] = {};  // XX XY YX YY
      for (const Source& s : sky) {
        const Vector3 lmn = direction_cosines(s.direction, o.phase_center);
        const double turns = (uvw_m[0] * lmn[0] + uvw_m[1] * lmn[1] + uvw_m[2] * (lmn[2] - 1)) *
                             o.frequency.center_hz(c) / kSpeedOfLight_m_per_s;
        const cf64 phase = std::polar(1.0, 2 * kPi * turns);
        stokes[0] += (s.i + s.q) * phase;
        stokes[1] += cf64(s.u, s.v) * phase;
        stokes[2] += cf64(s.u, -s.v) * phase;
        stokes[3] += (s.i - s.q) * phase;
      }
      for (std::int64_t p = 0; p < d.n_pol_products; ++p) {
        d.data[static_cast<std::size_t>(d.index(c, b, p))] = cf32(stokes[p]);
      }
    }
  }
  return d;
}

/// One source per quadrant, unequal; the second is 30 % circular, the third 20 % linear.
inline std::vector<Source> four_quadrants(const Observation& o) {
  return {{direction_of(0.050, 0.020, o.phase_center), 10, 0, 0, 0},
          {direction_of(-0.060, 0.035, o.phase_center), 6, 0, 0, 1.8},
          {direction_of(-0.040, -0.055, o.phase_center), 4, 0.8, 0, 0},
          {direction_of(0.065, -0.045, o.phase_center), 3, 0, 0, 0}};
}

}  // namespace ryle::test
