// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/scene_model.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"

namespace ryle::simulate::detail {

cf64 turn(double turns) {
  const double angle_rad = 2 * std::numbers::pi * (turns - std::nearbyint(turns));
  return {std::cos(angle_rad), std::sin(angle_rad)};
}

double dot(const Vector3& a, const Vector3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

void validate(const Scene& scene, const ArrayLayout& array) {
  const auto n_inputs = static_cast<std::size_t>(array.n_inputs());
  if (!scene.gains.empty() && scene.gains.size() != n_inputs) {
    throw ConfigError("the scene has " + std::to_string(scene.gains.size()) + " gains for " +
                      std::to_string(n_inputs) + " inputs");
  }
  if (!scene.input_sefd_jy.empty() && scene.input_sefd_jy.size() != n_inputs) {
    throw ConfigError("the scene has " + std::to_string(scene.input_sefd_jy.size()) +
                      " values of sefd_jy for " + std::to_string(n_inputs) + " inputs");
  }
  for (const auto input : scene.dead_inputs) {
    if (input < 0 || input >= array.n_inputs()) {
      throw ConfigError("dead input " + std::to_string(input) + " does not exist; the layout has " +
                        std::to_string(n_inputs) + " inputs");
    }
  }
  for (const auto& source : scene.sources) {
    if (!(source.flux_jy >= 0)) {
      throw ConfigError("source \"" + source.name + "\" has flux_jy = " +
                        std::to_string(source.flux_jy) + "; it must not be negative");
    }
    if (!(source.q * source.q + source.u * source.u + source.v * source.v <= 1)) {
      throw ConfigError("source \"" + source.name +
                        "\" is more than fully polarized; q^2 + u^2 + v^2 <= 1");
    }
  }
}

std::vector<Vector3> source_directions(const Scene& scene, const ArrayLayout& array,
                                       std::int64_t tai_ns, const EarthOrientation& eo) {
  std::vector<Vector3> directions;
  for (const auto& source : scene.sources) {
    directions.push_back(source_enu(source, array, tai_ns, eo));
    if (directions.back()[2] < 0) {
      throw ConfigError("source \"" + source.name + "\" is below the horizon at " +
                        utc_iso(tai_ns) + " UTC; move it or change the start time");
    }
  }
  return directions;
}

std::vector<Vector3> moving_directions(const Scene& scene, const ArrayLayout& array,
                                       std::int64_t tai_ns, const EarthOrientation& eo) {
  std::vector<Vector3> directions;
  for (const auto& source : scene.sources)
    directions.push_back(source_enu(source, array, tai_ns, eo));
  return directions;
}

double sefd_jy(const Scene& scene, std::int64_t input) {
  return scene.input_sefd_jy.empty() ? scene.sefd_jy : scene.input_sefd_jy[input];
}

cf64 gain(const Scene& scene, std::int64_t input) {
  return scene.gains.empty() ? cf64(1) : scene.gains[input];
}

bool is_dead(const Scene& scene, std::int64_t input) {
  return std::find(scene.dead_inputs.begin(), scene.dead_inputs.end(), input) !=
         scene.dead_inputs.end();
}

double input_power_jy(const Scene& scene, const ArrayLayout& array, std::int64_t input) {
  const double sign = array.inputs[input].pol == 0 ? 1 : -1;
  double power = sefd_jy(scene, input);
  for (const auto& source : scene.sources) power += source.flux_jy * (1 + sign * source.q);
  for (const auto& tone : scene.tones) power += tone.power_jy;
  return power * std::norm(gain(scene, input));
}

double counts_per_root_jy(const Scene& scene, const ArrayLayout& array, double level_lsb) {
  double rms_sum = 0;
  std::int64_t n_live = 0;
  for (std::int64_t input = 0; input < array.n_inputs(); ++input) {
    if (is_dead(scene, input)) continue;
    rms_sum += std::sqrt(input_power_jy(scene, array, input) / 2);  // rms of one part
    ++n_live;
  }
  if (n_live == 0 || !(rms_sum > 0)) {
    throw ConfigError(
        "the scene has no power: every input is dead, or sefd_jy and all fluxes are 0");
  }
  return level_lsb * static_cast<double>(n_live) / rms_sum;
}

FieldOfSource field_of_source(const Source& source) {
  const cf64 w(source.u, source.v);
  const double root = std::sqrt(1 + source.q);
  const double rest = std::sqrt(std::max(0.0, 1 - source.q * source.q - std::norm(w)));
  // q = -1: all of the power is in y
  if (!(root > 0)) return {0, 0, std::sqrt(2.0)};
  return {root, std::conj(w) / root, rest / root};
}

cf64 visibility_jy(const Scene& scene, const ArrayLayout& array,
                   const std::vector<Vector3>& directions, std::int64_t i, std::int64_t j,
                   double frequency_hz, double center_hz) {
  const auto& a = array.inputs[i];
  const auto& b = array.inputs[j];
  cf64 sum = 0;
  for (std::size_t s = 0; s < scene.sources.size(); ++s) {
    const Source& source = scene.sources[s];
    const Vector3& ra = array.antennas[a.antenna].enu_m;
    const Vector3& rb = array.antennas[b.antenna].enu_m;
    const Vector3 baseline{ra[0] - rb[0], ra[1] - rb[1], ra[2] - rb[2]};
    const cf64 coherence = a.pol == b.pol ? cf64(a.pol == 0 ? 1 + source.q : 1 - source.q)
                                          : cf64(source.u, a.pol == 0 ? source.v : -source.v);
    const double element = element_amplitude(scene, directions[s]);
    sum += source_flux_jy(source, frequency_hz, center_hz) * element * element * coherence *
           turn(frequency_hz * dot(baseline, directions[s]) / kSpeedOfLight_m_per_s);
  }
  if (i == j) sum += sefd_jy(scene, i);
  return sum;
}

}  // namespace ryle::simulate::detail
