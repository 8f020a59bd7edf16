// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/plot/picture.hpp"
#include "ryle/telescope/observation.hpp"

namespace ryle {

/// Visibility matrix, inputs (all X, then all Y) against inputs: amplitude in dB above the mean
/// autocorrelation, and phase. The mean over the (at most 16) channels about the band centre: wide
/// enough for the noise, narrow enough that delays do not wash the fringes out. Row p, column q
/// shows <v_p conj(v_q)>; the lower triangle is the conjugate of the upper. Products without data
/// stay empty.
void write_visibility_matrix_picture(const std::string& path, const VisibilityDump& mean,
                                     const Observation& observation, bool overwrite);

/// Bandpass in dB, 0 = median: the autocorrelations as lines over MHz (of up to six inputs; of
/// more, median and spread of each polarization) and their mean over time and channel; of more than
/// six inputs also the level of each, and all spectra side by side. Color bars end in points where
/// values lie beyond them.
/// @shape history [row][channel] linear power, mean over inputs, 0 or NaN = no data;
/// @unit duration_s: of all rows together
std::vector<Panel> bandpass_panels(const std::vector<std::vector<float>>& history,
                                   double duration_s, const VisibilityDump& mean,
                                   const Observation& observation);
void write_bandpass_picture(const std::string& path, const std::vector<std::vector<float>>& history,
                            double duration_s, const VisibilityDump& mean,
                            const Observation& observation, bool overwrite);
/// The same from the dumps themselves.
void write_bandpass_picture(const std::string& path, const std::vector<VisibilityDump>& dumps,
                            const Observation& observation, bool overwrite);

}  // namespace ryle
