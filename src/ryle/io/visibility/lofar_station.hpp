// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/io/visibility/visibility_file.hpp"

namespace ryle {

/// How the numbers of a station's calibration table act. ASTRON's tables are weights: corrected
/// V_ij = w_i V_ij conj(w_j). "gains" divides: V_ij / (g_i conj(g_j)).
enum class StationTable : std::uint8_t { weights, gains };

/// Array correlations of a LOFAR station: raw complex128, little-endian, no header. XST
/// (crosslets): [time][rcu][rcu] of one subband; ACC: [subband][rcu][rcu], a second each, named by
/// its end. Input 2k is X and 2k + 1 is Y of antenna k; M[a][b] = <v_a conj(v_b)>.
struct LofarStationFiles {
  std::vector<std::string> data_paths;  ///< one after the other in time
  bool is_acc = false;
  /// AntennaField.conf (ITRF) or AntennaArrays.conf (latitude, longitude, height and local metres).
  std::string antennas_path;
  std::string field;  ///< section of that file: "LBA", "LBA_OUTER", "HBA", ...; empty = by the mode
  std::int64_t n_rcus = 0;    ///< 0 = 96 of Dutch stations (CS..., RS...), else two an antenna
  std::int64_t rcu_mode = 0;  ///< 1 to 7; 0 = from the file name ("mode_3")
  std::int64_t subband = -1;  ///< 0 to 511; -1 = from the file name ("sb297")
  double integration_s = 1;
  std::string utc;  ///< of the first matrix (ACC: of the end); empty = from the file name
  std::string calibration_path;  ///< CalTable-...dat; empty = not calibrated
  StationTable calibration = StationTable::weights;
  std::vector<std::string> dead;               ///< antennas to leave out, by name or number from 0
  Conjugate conjugate = Conjugate::automatic;  ///< automatic = no
};

/// One dump a matrix (ACC: that of the subband), two polarizations, phased to the zenith of the
/// first. An antenna whose weight is 0 or not finite is marked bad. Notes of the provenance say
/// which times, frequency, antennas and table were used. Throws ConfigError for what is not given,
/// FormatError for sizes that do not fit, UnsupportedError for sparse antenna sets.
VisibilityFile read_lofar_station(const LofarStationFiles& files);

/// Center of a subband. @eq offset + subband x clock / 1024: clock 200 MHz (mode 6: 160), offset 0
/// (modes 1 to 4), 100 (5), 160 (6) or 200 MHz (7). Throws ConfigError for other modes.
double lofar_subband_hz(std::int64_t rcu_mode, std::int64_t subband);

}  // namespace ryle
