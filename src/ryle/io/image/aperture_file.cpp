// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/image/aperture_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <filesystem>

#include "ryle/core/error.hpp"
#include "ryle/io/base/fits_file.hpp"

namespace ryle {
namespace {

constexpr LONGLONG kMaxSide = 4096;
constexpr LONGLONG kMaxValues = 1LL << 28;  // 2 GiB in memory

}  // namespace

ApertureFile read_aperture_file(const std::string& path) {
  if (!std::filesystem::exists(path)) throw IoError::from_errno("open", path, ENOENT);
  io::FitsFile file = io::FitsFile::open(path);
  int status = 0;
  int n_axes = 0;
  LONGLONG extent[4] = {0, 0, 1, 1};
  fits_get_img_dim(file.get(), &n_axes, &status);
  file.check(status, "read the size of");
  if (n_axes == 3 || n_axes == 4) fits_get_img_sizell(file.get(), n_axes, extent, &status);
  file.check(status, "read the size of");
  const bool complex = n_axes == 4;
  const LONGLONG parts = complex ? extent[2] : 1;
  const LONGLONG count = complex ? extent[3] : extent[2];
  if (n_axes < 3 || n_axes > 4 || extent[0] != extent[1] || extent[0] < 1 || extent[0] > kMaxSide ||
      (complex && parts != 2) || count < 1 || count > kMaxValues / (extent[0] * extent[1])) {
    throw FormatError(fmt::format(
        "{}: {} axes of {} x {} x {} x {}: apertures are [aperture][2][n][n] (real, imaginary) or "
        "[aperture][n][n], n at most {}, {} values at most",
        path, n_axes, extent[0], extent[1], extent[2], extent[3], kMaxSide, kMaxValues));
  }
  ApertureFile apertures;
  apertures.n = extent[0];
  apertures.n_apertures = count;
  const double east_m = file.number("CDELT1", 0);
  const double north_m = file.number("CDELT2", 0);
  if (!(east_m > 0) || !(std::abs(north_m - east_m) <= 1e-9 * east_m)) {
    throw FormatError(fmt::format(
        "{}: CDELT1 = {:g}, CDELT2 = {:g}: both must be the step of the apertures in metres", path,
        east_m, north_m));
  }
  apertures.step_m = east_m;
  file.require_data();
  const auto plane = static_cast<std::size_t>(apertures.n * apertures.n);
  std::vector<double> raw(plane * static_cast<std::size_t>(parts * count));
  int any_null = 0;
  fits_read_img(file.get(), TDOUBLE, 1, static_cast<LONGLONG>(raw.size()), nullptr, raw.data(),
                &any_null, &status);
  file.check(status, "read the apertures of");
  apertures.values.resize(plane * static_cast<std::size_t>(count));
  for (std::size_t k = 0; k < apertures.values.size(); ++k) {
    const std::size_t first = k / plane * plane * static_cast<std::size_t>(parts) + k % plane;
    apertures.values[k] = {raw[first], complex ? raw[first + plane] : 0};
  }
  for (std::size_t k = 0; k < apertures.values.size(); ++k) {
    if (!std::isfinite(std::abs(apertures.values[k]))) {
      throw FormatError(fmt::format("{}: aperture {}, value {}: not a finite number", path,
                                    k / plane, k % plane));
    }
  }
  return apertures;
}

}  // namespace ryle
