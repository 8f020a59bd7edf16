// SPDX-License-Identifier: BSD-3-Clause
// The function that lays a visibility on the cells of a grid and on planes of w: exponential of
// semicircle (Barnett, Magland and af Klinteberg 2019, SIAM J. Sci. Comput. 41, C479). Private to
// engine/image.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace ryle::image::detail {

/// @eq phi(x) = exp(beta (sqrt(1 - (2x/W)^2) - 1)), |x| < W/2 cells, else 0
struct GridFunction {
  std::int64_t support = 8;  ///< W, cells
  double beta = 18.4;
  /// Cells of the grid per cell that the picture needs, at least, for the error that was asked for.
  double oversampling = 2;
  double operator()(double cells) const;
};

/// Its transform, by quadrature. @eq phi^(f) = integral phi(x) cos(2 pi f x) dx
class GridTransform {
 public:
  explicit GridTransform(const GridFunction& function);
  double operator()(double turns_per_cell) const;

 private:
  std::vector<double> cells_, weights_;
};

/// The largest relative error that a function leaves in one dimension, at the edge of a picture
/// that is `oversampling` times coarser than the grid.
/// @eq sum_k (|phi^(k - f)| + |phi^(k + f)|) / phi^(f), f = 1 / (2 oversampling), k = 1, 2, ...
double aliasing(const GridFunction& function, double oversampling);

inline constexpr std::int64_t kMinGridSupport = 4, kMaxGridSupport = 16;
/// The function of this support, with the beta and the lowest oversampling (1.5 to 3) that keep the
/// error of one dimension below `error`; none when no oversampling does.
std::optional<GridFunction> grid_function(std::int64_t support, double error);

/// phi at the W cells about a point as polynomials.
/// @eq phi(k + f - W/2) = sum_d c[d][k] s^(D - d), s = 2 f - 1, 0 <= f < 1
/// @shape coefficients [degree + 1][lanes], lanes = 8 or 16 (the smallest that holds the support),
///        zero beyond the support
template <class Real>
struct GridPolynomials {
  std::int64_t support = 0;
  std::int64_t lanes = 8;
  std::int64_t degree = 0;
  std::vector<Real> coefficients;
};
/// To `error` of the largest value, or as well as the numbers allow.
template <class Real>
GridPolynomials<Real> grid_polynomials(const GridFunction& function, double error);

/// Chebyshev series of 1 / phi^(f), |f| <= 1 / (2 oversampling), to 1e-14: for a value per pixel.
class InverseTransform {
 public:
  explicit InverseTransform(const GridFunction& function);
  double operator()(double turns_per_cell) const;

 private:
  double limit_;
  std::vector<double> series_;  ///< in (f / limit)^2
};

}  // namespace ryle::image::detail
