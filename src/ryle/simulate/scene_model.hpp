// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/simulate/scene.hpp"

/// What every kind of simulated voltage needs of a scene.
namespace ryle::simulate::detail {

/// exp(2 pi i turns).
cf64 turn(double turns);
double dot(const Vector3& a, const Vector3& b);

/// Sizes, fluxes and polarization degrees. Throws ConfigError.
void validate(const Scene& scene, const ArrayLayout& array);
/// Unit vectors to the sources. Throws ConfigError for one below the horizon.
std::vector<Vector3> source_directions(const Scene& scene, const ArrayLayout& array,
                                       std::int64_t tai_ns, const EarthOrientation& eo);

/// The same of a sky that turns: one below the horizon stays in the list and does not shine.
std::vector<Vector3> moving_directions(const Scene& scene, const ArrayLayout& array,
                                       std::int64_t tai_ns, const EarthOrientation& eo);

double sefd_jy(const Scene& scene, std::int64_t input);
cf64 gain(const Scene& scene, std::int64_t input);
bool is_dead(const Scene& scene, std::int64_t input);
/// Mean power of an input over the band: sum of sources, tones and receiver noise.
double input_power_jy(const Scene& scene, const ArrayLayout& array, std::int64_t input);
/// Factor from root Jy to counts at which the mean rms of a part over live inputs is `level_lsb`.
/// Throws ConfigError for a scene without power.
double counts_per_root_jy(const Scene& scene, const ArrayLayout& array, double level_lsb);

/// Field of a source in two independent white streams a, b with E|.|^2 = 1:
///   x = sqrt(1+q) a,  y = (w* a + sqrt(1 - q^2 - |w|^2) b) / sqrt(1+q),  w = u + iv, so that
/// <xx*> = 1+q, <xy*> = w, <yy*> = (|w|^2 + 1 - q^2 - |w|^2) / (1+q) = 1-q.
struct FieldOfSource {
  cf64 x_of_a = 1, y_of_a = 0, y_of_b = 1;
};
FieldOfSource field_of_source(const Source& source);

/// Expected visibility of two inputs at a frequency, gains and cables left out.
cf64 visibility_jy(const Scene& scene, const ArrayLayout& array,
                   const std::vector<Vector3>& directions, std::int64_t i, std::int64_t j,
                   double frequency_hz, double center_hz);

}  // namespace ryle::simulate::detail
