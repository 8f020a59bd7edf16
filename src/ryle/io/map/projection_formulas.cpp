// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/map/projection_formulas.hpp"

#include <wcslib/wcs.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "ryle/core/units.hpp"

namespace ryle {
namespace {

using Native = std::array<double, 3>;  ///< unit vector, native longitude from the first axis
constexpr double kNowhere = std::numeric_limits<double>::quiet_NaN();
constexpr Native kOff{kNowhere, kNowhere, kNowhere};

/// @eq zenithal: native longitude atan2(x, -y), latitude by the distance r from the pole
Native zenithal(ProjectionFormula::Kind kind, double x, double y) {
  const double r2 = x * x + y * y;
  double along = 1, up = 0;  // the vector is (-y along, x along, up)
  if (kind == ProjectionFormula::Kind::sin) {
    if (r2 > 1) return kOff;
    up = std::sqrt(1 - r2);
  } else if (kind == ProjectionFormula::Kind::tan) {
    up = 1 / std::sqrt(1 + r2);
    along = up;
  } else {
    if (r2 > 4) return kOff;
    up = 1 - 0.5 * r2;
    along = std::sqrt(1 - 0.25 * r2);
  }
  return {-y * along, x * along, up};
}

/// @eq CAR: longitude x, latitude y; SFL: longitude x / cos y
Native cylinder(ProjectionFormula::Kind kind, double x, double y) {
  if (std::abs(y) > 0.5 * kPi) return kOff;
  double longitude = x;
  if (kind == ProjectionFormula::Kind::sfl) {
    const double across = std::abs(y) < 0.5 * kPi ? std::cos(y) : 0;
    if (across == 0 && x != 0) return kOff;
    longitude = across == 0 ? 0 : x / across;
  }
  if (std::abs(longitude) > kPi * (1 + 1e-13)) return kOff;
  return {std::cos(y) * std::cos(longitude), std::cos(y) * std::sin(longitude), std::sin(y)};
}

double turned_into_range(double longitude_deg, bool below_zero) {
  if (!below_zero && longitude_deg < 0) return longitude_deg + 360;
  if (below_zero && longitude_deg > 0) return longitude_deg - 360;
  if (longitude_deg > 360) return longitude_deg - 360;
  return longitude_deg < -360 ? longitude_deg + 360 : longitude_deg;
}

}  // namespace

std::optional<ProjectionFormula> formula_of(const wcsprm& wcs) {
  using Kind = ProjectionFormula::Kind;
  constexpr std::pair<const char*, Kind> kKinds[] = {{"SIN", Kind::sin},
                                                     {"TAN", Kind::tan},
                                                     {"ZEA", Kind::zea},
                                                     {"CAR", Kind::car},
                                                     {"SFL", Kind::sfl}};
  const celprm& cel = wcs.cel;
  const prjprm& prj = cel.prj;
  ProjectionFormula f;
  bool known = false;
  for (const auto& [code, kind] : kKinds)
    if (std::strncmp(prj.code, code, 3) == 0) {
      f.kind = kind;
      known = true;
    }
  // A slant SIN, an offset of the reference point, another sphere.
  const bool slant = f.kind == Kind::sin && (prj.pv[1] != 0 || prj.pv[2] != 0);
  const bool moved = cel.offset != 0 || prj.x0 != 0 || prj.y0 != 0;
  const bool sphere = prj.r0 == 0 || std::abs(prj.r0 * kPi / 180 - 1) < 1e-12;
  const linprm& lin = wcs.lin;
  if (!known || slant || moved || !sphere || wcs.naxis != 2 || wcs.lng < 0 || wcs.lat < 0 ||
      lin.dispre != nullptr || lin.disseq != nullptr)
    return std::nullopt;
  const auto axis = [&wcs](int a) { return a == 0 ? wcs.lng : wcs.lat; };
  for (int a = 0; a < 2; ++a) {
    f.reference_pixel[a] = lin.crpix[axis(a)];
    for (int b = 0; b < 2; ++b)
      f.deg_per_pixel[2 * a + b] = lin.pc[2 * axis(a) + axis(b)] * lin.cdelt[axis(a)];
  }
  // wcslib's Euler angles: longitude and colatitude of the native pole, native longitude of the
  // celestial pole.
  f.pole_longitude_deg = cel.euler[0];
  f.sin_pole = cel.euler[3];  // the cosine of the colatitude
  f.cos_pole = cel.euler[4];
  f.native_longitude_rad = cel.euler[2] * kDegree_rad;
  return f;
}

void formula_directions(const ProjectionFormula& f, std::int64_t width, std::int64_t first_row,
                        std::int64_t n_rows, double* longitude_deg, double* latitude_deg) {
  using Kind = ProjectionFormula::Kind;
  const bool on_cylinder = f.kind == Kind::car || f.kind == Kind::sfl;
  const double turn_cos = std::cos(f.native_longitude_rad),
               turn_sin = std::sin(f.native_longitude_rad);
  for (std::int64_t row = 0; row < n_rows; ++row) {
    const double py = static_cast<double>(first_row + row + 1) - f.reference_pixel[1];
    for (std::int64_t i = 0; i < width; ++i) {
      const double px = static_cast<double>(i + 1) - f.reference_pixel[0];
      const double x = (f.deg_per_pixel[0] * px + f.deg_per_pixel[1] * py) * kDegree_rad;
      const double y = (f.deg_per_pixel[2] * px + f.deg_per_pixel[3] * py) * kDegree_rad;
      const Native v = on_cylinder ? cylinder(f.kind, x, y) : zenithal(f.kind, x, y);
      // Native longitudes from that of the celestial pole on, then the pole to where it is.
      const double u = v[0] * turn_cos + v[1] * turn_sin, w = v[1] * turn_cos - v[0] * turn_sin;
      const double from_pole = v[2] * f.cos_pole - u * f.sin_pole;
      const double z = v[2] * f.sin_pole + u * f.cos_pole;
      const std::int64_t to = row * width + i;
      latitude_deg[to] = std::atan2(z, std::sqrt(from_pole * from_pole + w * w)) / kDegree_rad;
      longitude_deg[to] = turned_into_range(
          f.pole_longitude_deg + std::atan2(-w, from_pole) / kDegree_rad, f.pole_longitude_deg < 0);
    }
  }
}

}  // namespace ryle
