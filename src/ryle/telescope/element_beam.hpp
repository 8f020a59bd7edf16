// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "ryle/core/samples.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle {

/// Response of antennas on a grid of frequency, azimuth and zenith angle; between grid points it is
/// linear. @shape values [frequency][zenith][azimuth][X theta, X phi, Y theta, Y phi]
struct ElementBeamTable {
  std::vector<double> frequencies_hz;  ///< ascending
  std::vector<double> zenith_rad;      ///< ascending
  std::vector<double> azimuth_rad;     ///< ascending, from north through east, less than 2 pi
  std::vector<cf64> values;
};

/// What one antenna receives from a direction, the same for all antennas of an array. Power is 1
/// toward the zenith (a table: as it stands): flux densities are those of a source there.
class ElementBeam {
 public:
  /// The same from everywhere above the horizon.
  static ElementBeam isotropic();
  /// Power n^exponent for both polarizations, n = cosine of the zenith angle. 0 to 16.
  static ElementBeam power(double exponent);
  /// Two crossed thin dipoles a height above a perfect ground, X at feed_angle_rad from north
  /// through east, Y at feed_angle_rad + 90 degrees. @eq v = (d . E) sin(2 pi h n / lambda)
  static ElementBeam dipole(double height_m, double feed_angle_rad);
  /// Throws ConfigError where axes and values do not fit each other.
  static ElementBeam table(ElementBeamTable table, std::string name);
  /// "isotropic", "power X", "dipole HEIGHT_M" or "dipole" (a quarter of a wavelength high at
  /// every frequency). Throws ConfigError for anything else.
  static ElementBeam named(const std::string& text, double feed_angle_rad);

  /// Of an unpolarized source of 1 Jy: XX, XY, YX, YY = J J^H, J = (X, Y) x (E-theta, E-phi); with
  /// I = (XX + YY) / 2, XX = YY = 1 from the zenith. 0 below the horizon. Throws ConfigError for a
  /// frequency that a table lacks, or at which a dipole is blind to the zenith.
  std::array<cf64, 4> coherency(const Vector3& enu, double frequency_hz) const;
  /// Whether it depends on the directions of the feeds.
  bool is_polarized() const { return kind_ == Kind::dipole || kind_ == Kind::table; }
  /// For headers and messages: "dipole 0.4 m above ground".
  const std::string& name() const { return name_; }

 private:
  enum class Kind { power, dipole, table };
  ElementBeam(Kind kind, std::string name) : kind_(kind), name_(std::move(name)) {}

  Kind kind_;
  std::string name_;
  double exponent_ = 0;
  double height_m_ = 0;  ///< 0 = a quarter of the wavelength
  double feed_angle_rad_ = 0;
  std::shared_ptr<const ElementBeamTable> table_;
};

}  // namespace ryle
