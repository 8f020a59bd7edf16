// SPDX-License-Identifier: BSD-3-Clause
// Cards of an image HDU: world coordinates and metadata. Private to io/.
#pragma once
#include "ryle/io/base/fits_file.hpp"
#include "ryle/io/image/image_file.hpp"

namespace ryle::io {

/// Sizes, Stokes codes, bins; throws ConfigError or UnsupportedError that names `path`.
void check_image(const std::string& path, const SkyImage& image);
/// Real-valued Stokes planes, without the cross product at the end; their number.
std::int64_t n_stokes_planes(const SkyImage& image);

/// Coordinates of the axes x, y, FREQ, STOKES (first code, step).
void write_image_wcs(FitsFile& file, const SkyImage& image, int first_stokes, int stokes_step);
/// The spectral and Stokes axes alone, as axes `number` and `number` + 1.
void write_spectral_axes(FitsFile& file, const SkyImage& image, int number, int first_stokes,
                         int stokes_step);
void write_axis(FitsFile& file, int number, const char* type, const char* unit, double value,
                double pixel, double delta);
/// Unit, time, place, telescope, how it was made.
void write_image_metadata(FitsFile& file, const SkyImage& image, const Observation& observation);
std::int64_t end_of(const SkyImage& image);

}  // namespace ryle::io
