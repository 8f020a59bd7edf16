// SPDX-License-Identifier: BSD-3-Clause
// What FITS headers of maps, HEALPix tables and sight lines say alike. Private to io/.
#pragma once
#include <cstdint>
#include <string>

#include "ryle/io/base/fits_file.hpp"
#include "ryle/io/image/cube_writer.hpp"

namespace ryle::io {

/// A linear axis of frequencies or velocities, or of channels that have neither.
struct SpectralAxis {
  std::string type = "CHANNEL", unit;
  double first = 0, step = 1;
};
/// Of a file of n_channels: one of a whole band when the metadata have more. Throws ConfigError for
/// velocities without a rest frequency.
SpectralAxis spectral_axis(std::int64_t n_channels, const MapMetadata& metadata);

/// Cards of axis `axis` of an image, with the frame and rest frequency.
void write_spectral_axis(FitsFile& file, int axis, std::int64_t n_channels,
                         const MapMetadata& metadata);
/// Cards of the axis of polarizations. @pre two codes or more, in even steps
void write_stokes_axis(FitsFile& file, int axis, const MapMetadata& metadata);
/// Cards of the vectors in a column of a table (FITS WCS paper III, table 1: its bintable forms).
void write_column_axis(FitsFile& file, int column, std::int64_t n_channels,
                       const MapMetadata& metadata);
/// Unit, beam, object, telescope, time, what was done. A table has its unit at the column.
void write_map_metadata(FitsFile& file, const MapMetadata& metadata, bool table = false);

}  // namespace ryle::io
