// SPDX-License-Identifier: BSD-3-Clause
// The plane of the array and what its residual heights cost.
#include <cmath>
#include <complex>

#include "ryle/core/units.hpp"
#include "ryle/engine/image/geometry.hpp"

namespace ryle::image {
namespace {

// Scatter of the used antennas about their mean.
struct Moments {
  double n = 0, x = 0, y = 0, z = 0;
  double xx = 0, xy = 0, yy = 0, xz = 0, yz = 0;
};

Moments moments(const AllSkyConfig& config, const std::vector<std::uint8_t>& used) {
  Moments m;
  for (std::size_t a = 0; a < used.size(); ++a) {
    if (!used[a]) continue;
    const auto& [x, y, z] = config.antenna_enu_m[a];
    m.n += 1;
    m.x += x;
    m.y += y;
    m.z += z;
  }
  if (m.n == 0) return m;
  m.x /= m.n;
  m.y /= m.n;
  m.z /= m.n;
  for (std::size_t a = 0; a < used.size(); ++a) {
    if (!used[a]) continue;
    const double x = config.antenna_enu_m[a][0] - m.x, y = config.antenna_enu_m[a][1] - m.y,
                 z = config.antenna_enu_m[a][2] - m.z;
    m.xx += x * x;
    m.xy += x * y;
    m.yy += y * y;
    m.xz += x * z;
    m.yz += y * z;
  }
  return m;
}

// Solves [xx xy; xy yy] (alpha, beta) = (xz, yz) in the directions in which the array is spread: a
// single antenna or an east-west line says nothing about the slope across it, which stays 0.
std::array<double, 2> slopes(const Moments& m) {
  const double middle = 0.5 * (m.xx + m.yy);
  const double radius = std::hypot(0.5 * (m.xx - m.yy), m.xy);
  const double angle_rad = 0.5 * std::atan2(2 * m.xy, m.xx - m.yy);
  const double c = std::cos(angle_rad), s = std::sin(angle_rad);
  const double large = middle + radius, small = middle - radius;
  // A spread of 1e-3 of the long axis or less is taken as none.
  const double along = large > 0 ? (c * m.xz + s * m.yz) / large : 0;
  const double across = small > 1e-6 * large ? (c * m.yz - s * m.xz) / small : 0;
  return {c * along - s * across, s * along + c * across};
}

}  // namespace

std::vector<std::uint8_t> antennas_used(const AllSkyConfig& config) {
  std::vector<std::uint8_t> used(config.antenna_enu_m.size(), 0);
  for (const auto& input : config.inputs) {
    if (!input.bad) used[input.antenna] = 1;
  }
  return used;
}

ArrayPlane fit_plane(const AllSkyConfig& config) {
  const auto used = antennas_used(config);
  const Moments m = moments(config, used);
  ArrayPlane plane;
  const auto [alpha, beta] = slopes(m);
  plane.alpha = alpha;
  plane.beta = beta;
  plane.z0_m = m.z - alpha * m.x - beta * m.y;
  double squares_m2 = 0;
  for (std::size_t a = 0; a < used.size(); ++a) {
    const auto& [x, y, z] = config.antenna_enu_m[a];
    plane.residual_m.push_back(z - (alpha * x + beta * y + plane.z0_m));
    if (used[a]) squares_m2 += plane.residual_m[a] * plane.residual_m[a];
  }
  plane.residual_rms_m = m.n > 0 ? std::sqrt(squares_m2 / m.n) : 0;
  return plane;
}

double plane_coherence(const ArrayPlane& plane, const std::vector<std::uint8_t>& antenna_used,
                       double frequency_hz, double zenith_distance_rad) {
  cf64 sum = 0;
  double n = 0;
  for (std::size_t a = 0; a < antenna_used.size(); ++a) {
    if (!antenna_used[a]) continue;
    const double turns = frequency_hz / kSpeedOfLight_m_per_s * plane.residual_m[a] *
                         (std::cos(zenith_distance_rad) - 1);
    sum += std::polar(1.0, 2 * kPi * (turns - std::round(turns)));
    n += 1;
  }
  return n > 0 ? std::abs(sum) / n : 1;
}

HeightError height_error(const ArrayPlane& plane, const std::vector<std::uint8_t>& antenna_used,
                         double frequency_hz, double zenith_distance_rad) {
  double n = 0;
  for (const std::uint8_t used : antenna_used) n += used != 0 ? 1 : 0;
  HeightError error;
  if (n < 2) return error;
  error.phase_rad = 2 * kPi * frequency_hz / kSpeedOfLight_m_per_s * plane.residual_rms_m *
                    (1 - std::cos(zenith_distance_rad));
  const double c = plane_coherence(plane, antenna_used, frequency_hz, zenith_distance_rad);
  // sum_{a != b} exp(i (phi_a - phi_b)) = |n c|^2 - n
  error.flux_loss = n * (1 - c * c) / (n - 1);
  return error;
}

}  // namespace ryle::image
