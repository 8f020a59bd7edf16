// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ryle/engine/image/cuda/all_sky_lists.hpp"
#include "ryle/engine/image/image.hpp"

/// Host side that the CUDA paths share, plain C++: which antennas, factors, lists, tapers.
namespace ryle::image::detail {

/// Antennas with a good input, in ascending order.
struct ArrayOfUsed {
  std::vector<std::int64_t> antenna;  ///< [a] index into antenna_enu_m
  std::vector<std::int32_t> input;    ///< [a][pol], -1 = none
};
ArrayOfUsed used_array(const AllSkyConfig& config);

/// Gain times phase of the height, 0 = not used. @shape [channel][a][pol] re, im
/// `heights` false: the path does its own geometry.
std::vector<float> factors(const AllSkyConfig& config, const ArrayOfUsed& array,
                           std::span<const cf32> gains, bool heights);
/// Pairs of used inputs behind XX, YY, XY of one spectrum. @shape [channel][3]
std::vector<double> pairs_per_spectrum(const AllSkyConfig& config, std::span<const cf32> gains);

/// Cells of the used antennas. @shape [channel][a][x, y]
std::vector<double> positions_cells(const AllSkyConfig& config, const ArrayOfUsed& array);

/// Baselines a < b (autos: a <= b) at b (b -+ 1)/2 + a; turned round where that brings the
/// footprint to the upper half plane. @shape [baseline]
std::vector<std::uint8_t> flips(const ArrayOfUsed& array, const std::vector<double>& positions,
                                bool autos);
/// First cells of the footprints of all baselines of a channel.
std::vector<Footprint> baseline_footprints(const ArrayOfUsed& array, const double* positions,
                                           const std::vector<std::uint8_t>& flips, bool autos,
                                           int support, bool correlated);
std::vector<Footprint> antenna_footprints(const ArrayOfUsed& array, const double* positions,
                                          int support);

/// User apertures of the used antennas, 0 where there is no Y. @shape [channel][a][y * k + x][X re,
/// X im, Y re, Y im]
std::vector<float> aperture_table(const AllSkyConfig& config, const ArrayOfUsed& array);
/// The antennas of every baseline, the one that is subtracted last. @shape [baseline][2]
std::vector<std::int32_t> baseline_antennas(const ArrayOfUsed& array,
                                            const std::vector<std::uint8_t>& flips, bool autos);
/// Planes of correlated_taper(): 1, or with apertures of two polarizations 3 (XX, YY, XY).
int n_tapers(const AllSkyConfig& config);

/// 1 / taper, NaN below the horizon. @shape [taper][y][x]
std::vector<float> inverse_taper(const AllSkyConfig& config, const std::vector<double>& taper);
/// 1 above the horizon, else NaN. @shape [pixel or direction]
std::vector<float> above_horizon(const AllSkyConfig& config);

}  // namespace ryle::image::detail
