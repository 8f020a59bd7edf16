// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ryle {

/// One receptor. @unit enu_m: metres east, north, up of the array reference
struct Antenna {
  std::string name;
  std::array<double, 3> enu_m{};
};

/// One signal path = (antenna, pol). @unit cable_delay_s: lateness of the path, seconds;
/// feed_angle_rad: X from north through east
struct ArrayInput {
  std::int64_t antenna = 0;
  int pol = 0;                    ///< 0 = X, 1 = Y
  double cable_delay_s = 0;       ///< frequency-independent part
  double cable_dispersion_s = 0;  ///< LWA coax: extra delay at 10 MHz, scales as sqrt(10 MHz / nu)
  double feed_angle_rad = 0;
  bool bad = false;  ///< flagged in the layout or station file: never used in images
};

/// An array: geographic reference, antennas, and the wiring (inputs in sample order).
/// @unit latitude_rad, longitude_rad (east positive): WGS84 geodetic; height_m
struct ArrayLayout {
  std::string name;
  double latitude_rad = 0;
  double longitude_rad = 0;
  double height_m = 0;
  std::vector<Antenna> antennas;
  std::vector<ArrayInput> inputs;

  std::int64_t n_antennas() const { return static_cast<std::int64_t>(antennas.size()); }
  std::int64_t n_inputs() const { return static_cast<std::int64_t>(inputs.size()); }
  std::int64_t n_pols() const;  ///< 1 or 2: largest pol + 1
};

/// Cable delay of an input at a frequency, dispersion included.
double cable_delay_s(const ArrayInput& input, double frequency_hz);

/// Reads "antenna,east_m,north_m,up_m,pol,cable_delay_ns[,feed_angle_deg][,bad]" (header line
/// required, '#' comments); one line per input in sample order. Throws FormatError with file:line,
/// IoError when missing.
ArrayLayout read_layout_csv(const std::string& path, double latitude_deg, double longitude_deg,
                            double height_m);

/// Reads an LWA station file (SSMIF): positions, antenna status, cable length, stretch and
/// dispersion. Input order = stand 1..n, X then Y, as TBF/TBX payloads.
ArrayLayout read_lwa_ssmif(const std::string& path);

/// Reads TART antenna_positions.json (east, north, up); one input per antenna.
ArrayLayout read_tart_positions(const std::string& path, double latitude_deg, double longitude_deg,
                                double height_m);

}  // namespace ryle
