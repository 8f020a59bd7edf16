// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/delay_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ryle/core/units.hpp"

namespace ryle::pipeline {

std::vector<double> DelayModel::delays_s(std::int64_t tai_ns) const {
  const Vector3 s0 = enu_of_direction(array_, phase_center_, tai_ns, eo_);
  std::vector<double> delays(array_.n_inputs());
  for (std::size_t p = 0; p < delays.size(); ++p) {
    delays[p] = tracking_delay_s(array_, static_cast<std::int64_t>(p), s0, frequency_hz_);
  }
  return delays;
}

std::vector<channelize::DelayPolynomial> DelayModel::polynomials(const SampleClock& clock,
                                                                 Tick first, Tick last) const {
  // Newton's divided differences on four equidistant instants, expanded around the first.
  const double span_s = std::max(clock.seconds(last - first), 1.0);
  const double h = span_s / 3;
  std::array<std::vector<double>, 4> d;
  for (int k = 0; k < 4; ++k) {
    d[k] = delays_s(clock.tai_ns(first) + static_cast<std::int64_t>(std::llround(k * h * 1e9)));
  }
  std::vector<channelize::DelayPolynomial> result(d[0].size());
  for (std::size_t p = 0; p < result.size(); ++p) {
    const double c1 = (d[1][p] - d[0][p]) / h;
    const double c2 = (d[2][p] - 2 * d[1][p] + d[0][p]) / (2 * h * h);
    const double c3 = (d[3][p] - 3 * d[2][p] + 3 * d[1][p] - d[0][p]) / (6 * h * h * h);
    auto& poly = result[p];
    poly.reference_tick = first;
    poly.delay_s[0] = d[0][p];
    poly.delay_s[1] = c1 - c2 * h + 2 * c3 * h * h;
    poly.delay_s[2] = c2 - 3 * c3 * h;
    poly.delay_s[3] = c3;
  }
  return result;
}

double DelayModel::largest_delay_s(const ArrayLayout& array, double frequency_hz) {
  double largest = 0;
  for (const auto& input : array.inputs) {
    const auto& r = array.antennas[input.antenna].enu_m;
    const double radius = std::sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
    largest = std::max(
        largest, radius / kSpeedOfLight_m_per_s + std::abs(cable_delay_s(input, frequency_hz)));
  }
  return largest;
}

}  // namespace ryle::pipeline
