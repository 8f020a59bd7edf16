// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ryle/telescope/element_beam.hpp"
#include "ryle/telescope/sky_model.hpp"

namespace ryle {

/// A source as an array sees it at an instant.
struct ApparentSource {
  std::string name;
  Vector3 enu{};                     ///< apparent direction: l east, m north, n up
  std::array<Vector3, 2> tangent{};  ///< east and north of ICRS at the source, in ENU
  double major_rad = 0;              ///< full width at half maximum; 0 = a point
  double minor_rad = 0;
  double angle_rad = 0;
  bool is_flux_free = false;  ///< its coherency is that of 1 Jy
  double relative_error = 0;  ///< of the flux at the middle channel; 0 = not known
  /// XX, XY, YX, YY in Jy through the element beam. @shape [channel][4]
  std::vector<std::array<cf64, 4>> coherency;
};

/// The sources that are up.
struct ApparentSky {
  std::vector<ApparentSource> sources;
  std::vector<std::string> left_out;  ///< "Her A: below the horizon", a line each
  std::vector<std::string> warnings;  ///< "the Sun is up (elevation 47 deg) and not in the model"
};

/// The sky model over `array` at an instant, at these frequencies. Throws ConfigError where nothing
/// is above min_elevation_rad, and for a source named by itself whose flux is not known at one of
/// the frequencies; such members of a group are left out. With a beam that depends on the feeds all
/// inputs of a polarization must have one feed angle.
ApparentSky apparent_sky(const SkyModel& sky, const ArrayLayout& array, std::int64_t tai_ns,
                         std::span<const double> frequencies_hz,
                         const ElementBeam& beam = ElementBeam::isotropic(),
                         double min_elevation_rad = 0, const EarthOrientation& eo = {});

/// How model visibilities are summed; the results agree to rounding.
enum class ModelMethod : std::uint8_t {
  reference,  ///< the equation, baseline by baseline
  antennas,   ///< one phase an antenna, then products: some ten times faster
};

/// Visibilities of sources in Jy. @eq V_ij = sum_k C_k g_k exp(2 pi i nu (r_i - r_j) . (s_k - s_0)
/// / c), g_k of a Gaussian exp(-pi^2 / (4 ln 2) ((u' major)^2 + (v' minor)^2)), u' and v' along its
/// axes in wavelengths (conventions.md 5). `phase_center_enu` = s_0, the apparent direction that
/// the data are phased to; {0, 0, 0}: not phased. `products`: 0 XX, 1 XY, 2 YX, 3 YY.
/// @shape [channel][baseline][product], baseline = pair_index(antenna_i, antenna_j), autos
/// included: they hold the sky and no receiver noise.
std::vector<cf64> model_visibilities(const ArrayLayout& array,
                                     std::span<const ApparentSource> sources,
                                     std::span<const double> frequencies_hz,
                                     const Vector3& phase_center_enu, std::span<const int> products,
                                     ModelMethod method = ModelMethod::antennas);

}  // namespace ryle
