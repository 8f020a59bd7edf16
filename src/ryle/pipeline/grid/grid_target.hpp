// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <memory>
#include <string>

#include "ryle/engine/grid/grid.hpp"
#include "ryle/pipeline/grid/sky_cells.hpp"

namespace ryle::pipeline {

/// The cells a user asks for: "auto", the name of a FITS file, words such as
/// "center=70.04,36.29 size=55x10deg cell=2arcmin proj=SIN frame=icrs" (what is left out comes from
/// the samples: all of them on the map, centered, pixels of `cell_rad`), "healpix:2048",
/// "healpix:nside=2048,order=ring,frame=galactic,full" (without nside: pixels of at most
/// `cell_rad`; without full: those nearer than `reach_rad` to a sample), or "sightlines:FILE.csv"
/// with columns name, lon, lat (ra, dec; glon, glat) in degrees. Throws ConfigError.
std::unique_ptr<SkyCells> make_sky_cells(const std::string& text, const grid::Positions& samples,
                                         SkyFrame samples_frame, double cell_rad, double reach_rad);

/// Turns unit vectors in place. @pre rotation is 3 x 3, row major
void rotate(grid::Positions& positions, const std::array<double, 9>& rotation);

}  // namespace ryle::pipeline
