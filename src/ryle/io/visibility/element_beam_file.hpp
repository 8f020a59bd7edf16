// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>

#include "ryle/telescope/element_beam.hpp"

namespace ryle {

/// Reads a table of the response of one antenna from HDF5: `frequency_hz` [f], `zenith_deg` [z],
/// `azimuth_deg` [a] (from north through east), all ascending, and complex `jones` [f][z][a][X,
/// Y][E-theta, E-phi], theta down from the zenith, phi toward growing azimuth. Throws FormatError,
/// ConfigError, IoError.
ElementBeam read_element_beam(const std::string& path);

/// A name of ElementBeam::named(), or a file of read_element_beam() (.h5, .hdf5).
ElementBeam element_beam_of(const std::string& text, double feed_angle_rad);

}  // namespace ryle
