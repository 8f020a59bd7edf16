// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ryle/core/samples.hpp"
#include "ryle/telescope/array.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle::simulate {

/// A point source. Its place is `icrs`, or else direction cosines (l east, m north) of the array's
/// horizon at the start of the record. Stokes q, u, v are fractions of I in the frame of the feeds:
/// XX = I(1+q), YY = I(1-q), XY = I(u+iv)  (conventions.md 6: the mean, so unpolarised S Jy has XX
/// = YY = S).
struct Source {
  std::string name;
  std::optional<SkyDirection> icrs{};
  double l = 0;
  double m = 0;
  double flux_jy = 1;
  double q = 0;
  double u = 0;
  double v = 0;
  double spectral_index = 0;  ///< S(nu) = flux (nu / reference)^index
  double reference_hz = 0;    ///< 0 = the record's centre frequency
  /// A transient: shines from start_s on for duration_s of the schedule; 0 = always.
  double start_s = 0;
  double duration_s = 0;
  /// Shines again every period_s, and later in lower channels by the dispersion; start_s is then of
  /// the highest channel.
  double period_s = 0;
  double dm_pc_cm3 = 0;
};
bool is_transient(const Source& source);
bool shines(const Source& source, double at_s);

/// s MHz^2 pc^-1 cm^3 (conventions.md 7).
inline constexpr double kDispersion_s_mhz2 = 4148.8064;
/// Lateness at a frequency against another. @eq t = k_DM DM (nu^-2 - nu_ref^-2)
double dispersion_delay_s(double dm_pc_cm3, double frequency_hz, double reference_hz);

/// A steady carrier arriving from a direction of the horizon frame, in both pols alike.
/// @unit power_jy: its power in the whole band, on the scale of a white source of that many Jy
struct Tone {
  double frequency_hz =
      0;  ///< sky frequency; moved to the nearest multiple of rate / n_samples (no seam)
  double power_jy = 0;
  double l = 0;
  double m = 0;
};

/// What the array looks at and what its receivers add.
struct Scene {
  std::vector<Source> sources;
  std::vector<Tone> tones;
  double sefd_jy = 1000;                  ///< receiver noise of an input
  std::vector<double> input_sefd_jy;      ///< [input], empty = sefd_jy everywhere
  std::vector<cf64> gains;                ///< [input], empty = 1; v_recorded = g v
  std::vector<std::int64_t> dead_inputs;  ///< deliver zeros
  /// Beam of every antenna: power response (sine of the elevation)^n; 0 = isotropic.
  double element_power = 0;
  bool apply_cable_delays = true;
  std::uint64_t seed = 1;
};

/// Unit vector (east, north, up) to a source at an instant. @pre l^2 + m^2 <= 1, else ConfigError
Vector3 source_enu(const Source& source, const ArrayLayout& array, std::int64_t tai_ns,
                   const EarthOrientation& eo = {});
/// What the beam of an antenna makes of a field amplitude from a direction; 0 below the horizon.
/// @eq a = up^(n / 2), n = element_power
double element_amplitude(const Scene& scene, const Vector3& direction);
/// Flux at a frequency.
double source_flux_jy(const Source& source, double frequency_hz, double center_hz);

}  // namespace ryle::simulate
