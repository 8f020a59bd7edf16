// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>
#include <vector>

#include "ryle/io/visibility/visibility_file.hpp"

namespace ryle {

/// Raw visibilities of the MWA's correlator MWAX (since 2021): FITS files
/// OBSID_YYYYMMDDHHMMSS_chCCC_NNN.fits, one coarse channel and some integrations each, and the
/// metafits of the observation. Visibilities of 128 tiles before MWAX ("gpubox") are not read.
struct MwaxFiles {
  std::vector<std::string> data_paths;  ///< in any order; coarse channels must follow each other
  std::string metafits_path;
  bool as_recorded = false;       ///< leave the cable delays in, where the correlator did
  std::vector<std::string> dead;  ///< tiles to leave out, by name or number from 0
  Conjugate conjugate = Conjugate::automatic;  ///< automatic = as MWAX writes it
};

/// One dump an integration, XX XY YX YY, all coarse channels on one axis, phased to the zenith of
/// the first integration; lengths of cables are taken out of the phases unless the metafits says
/// that the correlator did so (CABLEDEL) or `as_recorded`. Tiles whose Flag is set are marked bad.
/// Throws FormatError, ConfigError for files that do not fit each other, UnsupportedError for
/// fringe-stopped data and the correlator before MWAX.
VisibilityFile read_mwax(const MwaxFiles& files);

}  // namespace ryle
