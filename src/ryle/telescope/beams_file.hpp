// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ryle/core/samples.hpp"
#include "ryle/telescope/pointing.hpp"

/// The beams file (TOML): array, band, beams, sub-arrays, calibration.
namespace ryle {

struct BeamsFile {
  ArrayLayout array;  ///< inputs in the order of the samples
  EarthOrientation earth_orientation;
  double first_center_hz = 0;  ///< in the order of the data; a negative step descends
  double channel_step_hz = 0;
  std::int64_t n_channels = 0;
  std::vector<BeamPointing> beams;  ///< grids expanded
  std::vector<std::string> subarray_names;
  std::vector<std::vector<double>> subarrays;  ///< [subarray][antenna]; the first is all antennas
  std::vector<std::int64_t> subarray_of_beam;  ///< index into subarrays
  std::vector<cf64> gains;                     ///< [input]; empty = 1
  std::string gain_mode = "inverse";           ///< inverse | matched | phase
  std::string normalization = "noise";         ///< sum | mean | noise
};

/// What is known beside the file.
struct BeamsContext {
  std::optional<ArrayLayout> array;  ///< replaces the array of [telescope], which may be left out
  std::string layout;         ///< CSV that replaces telescope.layout, at the place of [telescope]
  bool band_of_data = false;  ///< [band] may be left out: n_channels is 0 then
};

/// Reads
///   [telescope] name layout latitude_deg longitude_deg height_m, dut1_s | dut1_file
///   [band] first_center_mhz channel_step_khz n_channels
///   [calibration] gains mode normalization
///   [subarray.NAME] antennas = "0-15,18" (indices in the layout) taper = 1.0 or a list
///   [[beam]] name frame, ra_deg dec_deg | ra dec | ha_deg dec_deg | az_deg el_deg | ephemeris |
///            relative_to, offset offset_x_deg offset_y_deg freeze_at_utc subarray
///   [[beam_grid]] around pattern count spacing_deg | spacing_x_deg spacing_y_deg, offset subarray
/// Files are relative to the beams file. Unknown keys, wrong types and impossible values are
/// ConfigErrors with file:line; IoError when it cannot be read.
BeamsFile load_beams(const std::string& path, const BeamsContext& context = {});
BeamsFile parse_beams(const std::string& text, const std::string& path,
                      const BeamsContext& context = {});

}  // namespace ryle
