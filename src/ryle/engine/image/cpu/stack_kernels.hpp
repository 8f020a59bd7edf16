// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/engine/image/cpu/kernels.hpp"

/// What the instruction-set files of the w-stacking imager implement. Plain types only, as in
/// cpu/kernels.hpp.
namespace ryle::image::detail {

/// A grid is laid in tiles of this many cells a side, in memory of a worker's own: what lies within
/// a tile of cells and its margin.
inline constexpr std::int64_t kStackTileCells = 32;
inline constexpr std::int64_t kStackTileMargin = 16;  ///< of the widest function

/// One visibility, where it lies in its tile. The first of its cells and planes, and how far that
/// is above the end of the function (GridPolynomials), below one.
template <class Real>
struct StackSample {
  std::int16_t u = 0, v = 0;
  std::int32_t plane = 0;
  Real fraction_u = 0, fraction_v = 0, fraction_w = 0;
  Real re = 0, im = 0;
};

template <class Real>
struct StackFunction {
  std::int64_t support = 0, degree = 0;
  const Real* coefficients = nullptr;  ///< GridPolynomials::coefficients
};

/// The samples of a tile that reach one plane.
template <class Real>
struct StackTile {
  const StackSample<Real>* samples = nullptr;
  std::int64_t n = 0;
  std::int32_t plane = 0;
  bool flat = false;     ///< one plane for everything: no function along w
  Real* grid = nullptr;  ///< the tile's first cell; [block of u][v][re, im][lanes]
  std::int64_t block_stride = 0;
};

/// The transforms of a plane.
template <class Real>
struct StackTransform {
  TransformOf<Real> transform;
  std::int64_t n_pixels = 0;
  std::int64_t n_u = 0, n_v = 0;           ///< cells that hold something, at most transform.n
  const std::int32_t* pixel_of = nullptr;  ///< [frequency index], -1 = not in the picture
  std::int64_t middle_stride = 0;          ///< numbers of a block of rows of the middle
};

/// Pixels of a block of `lanes` rows: [x][lane].
struct StackPixels {
  std::int64_t first = 0, last = 0;  ///< columns with sky
  const double* t = nullptr;         ///< what w is multiplied with
  const double* turns_x = nullptr;   ///< [x] of the place of the grid
  const double* turns_y = nullptr;   ///< [lane]
  double w_waves = 0;
  double* sum = nullptr;
};

template <class Real>
struct StackKernels {
  std::int64_t lanes;  ///< transforms at a time; kStackTileCells is a multiple
  /// Adds the samples of a tile to the grid of a plane. Tiles that touch must not run together.
  void (*lay_tile)(const StackFunction<Real>& function, const StackTile<Real>& tile);
  /// Transforms the columns of one block of u along v and keeps the rows of the picture:
  /// middle [block of y][u][re, im][lane = y].
  /// @pre scratch holds (n_pixels rounded up to lanes + 2 transform.n) points
  void (*columns)(const StackTransform<Real>& plan, const Real* grid, std::int64_t block,
                  Real* middle, Real* scratch);
  /// Transforms `lanes` rows along u and adds the plane to the pixels.
  /// @eq sum += Re( FFT exp(2 pi i (turns_x + turns_y - w t)) )
  void (*rows)(const StackTransform<Real>& plan, const Real* middle, const StackPixels& pixels,
               Real* scratch);
};
template <class Real>
const StackKernels<Real>& stack_kernels_generic();
template <class Real>
const StackKernels<Real>& stack_kernels_avx2();
template <class Real>
const StackKernels<Real>& stack_kernels_avx512();

}  // namespace ryle::image::detail
