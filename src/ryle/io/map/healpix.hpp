// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <vector>

/// HEALPix: the sphere in 12 nside^2 pixels of equal area (Gorski et al. 2005, ApJ 622, 759).
/// Orders: order k means nside = 2^k, k <= 29.
namespace ryle::healpix {

inline constexpr int kMaxOrder = 29;

/// Place of a pixel in one of the 12 base pixels: x grows to the north-east, y to the north-west.
struct FacePixel {
  std::int64_t x = 0, y = 0;
  int face = 0;
};

constexpr std::int64_t n_pixels(int order) { return std::int64_t{12} << (2 * order); }
/// Throws ConfigError unless nside is a power of two in [1, 2^29].
int order_of(std::int64_t nside);

FacePixel face_of_nest(int order, std::int64_t pixel);
std::int64_t nest_of_face(int order, const FacePixel& at);
std::int64_t ring_of_face(int order, const FacePixel& at);
std::int64_t ring_of_nest(int order, std::int64_t pixel);

/// The pixel a direction is in. @pre the vector is finite and not 0; it need not be of unit length
std::int64_t nest_of(int order, double x, double y, double z);
/// Unit vector to the center of a pixel, exact to rounding at the poles too.
std::array<double, 3> center_of_nest(int order, std::int64_t pixel);
/// No point of any pixel is farther from its center. @unit rad
double largest_radius_rad(int order);

/// A run of pixels [first, last) in nested order.
struct Range {
  std::int64_t first = 0, last = 0;
};
/// All pixels whose centers are nearer than `reach_rad` to one of n unit vectors (NaN: none), as
/// ascending ranges that do not touch. Memory and time follow the samples, not the sphere.
std::vector<Range> covered(int order, double reach_rad, std::int64_t n, const double* x,
                           const double* y, const double* z);

}  // namespace ryle::healpix
