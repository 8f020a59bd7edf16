// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/telescope/geometry.hpp"

/// Sources with their flux densities: what calibration compares visibilities with.
namespace ryle {

/// A spectrum. @eq log10(|S| / Jy) = sum_k coefficients[k] log10(nu / reference_hz)^k, and
/// S(t) = S (1 - fading_per_year)^(t - epoch_year). It holds from min_hz to max_hz, nowhere else.
struct FluxLaw {
  double reference_hz = 1e9;
  std::vector<double> coefficients;
  double sign = 1;  ///< -1: a component of negative flux (of a deconvolution)
  double min_hz = 0;
  double max_hz = 0;
  double epoch_year = 0;       ///< Julian year; without fading it has no effect
  double fading_per_year = 0;  ///< fraction, 0.0067 = 0.67 % a year
  double fading_error_per_year = 0;
  double relative_error = 0;  ///< of the scale, 1 sigma; 0 = not known
  std::string reference;      ///< publication or file
};

/// @unit jy, error_jy: Jy; error_jy (1 sigma) is 0 where it is not known
struct FluxDensity {
  double jy = 0;
  double error_jy = 0;
};

/// A point or a Gaussian on the sky, unpolarized: XX = YY = S.
struct SkySource {
  std::string name;
  std::optional<SkyDirection> fixed;  ///< else a body: body(name, t)
  std::vector<FluxLaw> laws;  ///< the first whose range holds a frequency counts; none = the flux
                              ///< is free (Sun, Cen A): only the place can be used
  double major_rad = 0;       ///< full width at half maximum; 0 = a point
  double minor_rad = 0;
  double angle_rad = 0;  ///< of the major axis, from north through east
  /// A member of a group or catalogue: where its flux is not known it is left out, and said so.
  bool of_group = false;

  bool is_flux_free() const { return laws.empty(); }
  /// ICRS, at an instant.
  SkyDirection direction(std::int64_t tai_ns, const ArrayLayout* site = nullptr) const;
};

/// 2000 + (JD - 2451545) / 365.25 of the UTC of an instant.
double julian_year(std::int64_t tai_ns);

/// Whether a law of the source holds at the frequency.
bool has_flux(const SkySource& source, double frequency_hz);
/// Flux density at a frequency and Julian year. The error adds scale and fading in squares. Throws
/// ConfigError where no law holds: nothing is extrapolated.
FluxDensity flux_density(const SkySource& source, double frequency_hz, double year);
inline double flux_jy(const SkySource& source, double frequency_hz, double year) {
  return flux_density(source, frequency_hz, year).jy;
}
/// "50 MHz to 12 GHz, 20 to 50 MHz", or "no flux is known".
std::string flux_range(const SkySource& source);

/// Sources, and what was left out on the way to them.
struct SkyModel {
  std::vector<SkySource> sources;
  std::vector<std::string> notes;
};

/// Every source Ryle knows: the scale sources of Perley & Butler 2017, the bright sources of the
/// catalog and the Sun.
SkyModel built_in_sky();
/// Names parted by commas ("sun, Cas A, 3C 196"), "a-team" (Cyg A, Cas A, Tau A, Vir A, Hya A,
/// For A, Pic A, Her A: those whose flux is known at the frequency), and names of files, which are
/// read by read_sky_model(). Throws ConfigError for a name that is not known or given twice.
SkyModel sky_model_named(std::string_view text);

/// Reads sources from a file, by its ending:
/// .csv, .tsv, .txt: a table with a header line; columns of Ryle (name, ra_deg, dec_deg, flux_jy,
/// frequency_mhz and, optional, spectral_index, curvature, min_mhz, max_mhz, major_arcsec,
/// minor_arcsec, angle_deg), of GLEAM (RAJ2000, DEJ2000, Fintfit200 or Fintwide, alpha) or of VLSSr
/// (RAJ2000, DEJ2000, Sp) as VizieR writes them;
/// .skymodel, .bbs: makesourcedb text of LOFAR, points and Gaussians;
/// .json: a source list of hyperdrive, points and Gaussians.
/// `notes` has a line for rows that were left out. Throws FormatError with file:line, IoError.
SkyModel read_sky_model(const std::string& path);

}  // namespace ryle
