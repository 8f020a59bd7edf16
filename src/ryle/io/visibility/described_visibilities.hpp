// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>

#include "ryle/io/visibility/visibility_file.hpp"

namespace ryle {

/// Whether a text file (.toml) has the section [visibilities]: a description of visibilities whose
/// own files do not say what they are.
bool is_visibility_description(const std::string& path);

/// Reads the visibilities that a description names (docs/stations.md): `format` = "covariance" (a
/// pair of FITS matrices), "lofar-xst", "lofar-acc" or "mwax"; files beside the description are
/// named relative to it. `options.conjugate` other than automatic overrides the description. Throws
/// ConfigError with file:line for keys that are missing or not known, and what the readers throw.
VisibilityFile read_described_visibilities(const std::string& path,
                                           const VisibilityReadOptions& options);

}  // namespace ryle
