// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <optional>

struct wcsprm;

/// Pixels to directions by closed forms, for the projections of nearly every map: SIN, TAN, ZEA,
/// CAR and SFL without further parameters (Calabretta and Greisen 2002). wcslib, which takes two to
/// three times as long, does all others.
namespace ryle {

struct ProjectionFormula {
  enum class Kind : std::uint8_t { sin, tan, zea, car, sfl };
  Kind kind = Kind::sin;
  std::array<double, 2> reference_pixel{};  ///< along x and y, counted from 1
  std::array<double, 4> deg_per_pixel{};    ///< (longitude, latitude) x (x, y)
  double pole_longitude_deg = 0;            ///< of the native pole
  double sin_pole = 0, cos_pole = 0;        ///< of its latitude
  double native_longitude_rad = 0;          ///< of the celestial pole
};

/// None where a parameter (PVi_m, another sphere, distortions) needs wcslib. @pre wcsset()
std::optional<ProjectionFormula> formula_of(const wcsprm& wcs);

/// Centers of pixels of rows [first, first + n); NaN off the projection. Longitudes run from 0 to
/// 360, or from -360 to 0 where the native pole has a longitude below 0, as wcslib has them.
/// @unit degrees
void formula_directions(const ProjectionFormula& formula, std::int64_t width,
                        std::int64_t first_row, std::int64_t n_rows, double* longitude_deg,
                        double* latitude_deg);

}  // namespace ryle
