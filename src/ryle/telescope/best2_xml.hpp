// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/telescope/pointing.hpp"

/// Observation and antenna files (XML) of the BEST-2 back-end of Magro 2014, with what they leave
/// unsaid made explicit (beamform.md 5).
namespace ryle {

/// What the numbers of `<x> <y> <z>` are: the published antenna file has wavelengths at its
/// `<center_freq>`; read as meters the array is stretched by 1.36 and still looks plausible.
enum class Best2Positions : std::uint8_t { wavelengths, meters };
/// Order of the channels in the data; the files say it by a sign that two programs read oppositely.
enum class Best2Band : std::uint8_t { descending, ascending };

struct Best2Observation {
  ArrayLayout array;  ///< inputs in the order of the ADC channels, which is that of the packets
  double center_frequency_hz = 0;  ///< of the antenna file: what weights refer to
  std::int64_t n_channels = 0;
  double first_center_hz = 0;  ///< of channel 0 in the order of the data
  double channel_step_hz = 0;  ///< negative: descending
  double spectrum_interval_s = 0;
  std::int64_t block_spectra = 0;  ///< 0: not given
  std::int64_t bits = 0;           ///< 0: not given
  std::int64_t downsample = 1;
  std::vector<BeamPointing> beams;     ///< icrs where RA is not 0, else hadec; empty: no directions
  std::array<double, 2> aperture_m{};  ///< extent east, north
  std::vector<std::string> warnings;   ///< one line each
};

/// Reads both files. Unknown elements and attributes are errors that list the known ones; names of
/// the other dialect, which the published programs silently read as 0, are taken and warned of.
/// Throws FormatError with "file:line: ...", IoError.
Best2Observation read_best2(const std::string& observation_path, const std::string& antennas_path,
                            Best2Positions positions, Best2Band band);

/// The layout as CSV (read_layout_csv), one line per input in the order of the packets.
std::string best2_layout_csv(const Best2Observation& observation);
/// The beams file (TOML) that names the layout file.
std::string best2_beams_toml(const Best2Observation& observation, const std::string& layout_file);

}  // namespace ryle
