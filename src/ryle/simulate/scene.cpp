// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/scene.hpp"

#include <cmath>

#include "ryle/core/error.hpp"

namespace ryle::simulate {

Vector3 source_enu(const Source& source, const ArrayLayout& array, std::int64_t tai_ns,
                   const EarthOrientation& eo) {
  if (source.icrs) return enu_of_direction(array, *source.icrs, tai_ns, eo);
  const double radius2 = source.l * source.l + source.m * source.m;
  if (!(radius2 <= 1)) {
    throw ConfigError("source \"" + source.name + "\" at (l, m) = (" + std::to_string(source.l) +
                      ", " + std::to_string(source.m) + ") is not on the sky; l^2 + m^2 <= 1");
  }
  return {source.l, source.m, std::sqrt(1 - radius2)};
}

double element_amplitude(const Scene& scene, const Vector3& direction) {
  if (direction[2] < 0) return 0;
  return scene.element_power > 0 ? std::pow(direction[2], 0.5 * scene.element_power) : 1;
}

double dispersion_delay_s(double dm_pc_cm3, double frequency_hz, double reference_hz) {
  const double mhz = frequency_hz * 1e-6, reference_mhz = reference_hz * 1e-6;
  return kDispersion_s_mhz2 * dm_pc_cm3 * (1 / (mhz * mhz) - 1 / (reference_mhz * reference_mhz));
}

double source_flux_jy(const Source& source, double frequency_hz, double center_hz) {
  if (source.spectral_index == 0) return source.flux_jy;
  const double reference_hz = source.reference_hz > 0 ? source.reference_hz : center_hz;
  return source.flux_jy * std::pow(frequency_hz / reference_hz, source.spectral_index);
}

bool is_transient(const Source& source) { return source.duration_s > 0; }

bool shines(const Source& source, double at_s) {
  return !is_transient(source) ||
         (at_s >= source.start_s && at_s < source.start_s + source.duration_s);
}

}  // namespace ryle::simulate
