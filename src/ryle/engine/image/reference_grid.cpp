// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/reference_grid.hpp"

#include "ryle/math/fft.hpp"

namespace ryle::image::detail {

void ReferenceGrid::add(std::int64_t y, std::int64_t x, cf64 value) {
  const auto cyclic = [&](std::int64_t j) { return j % g_ < 0 ? j % g_ + g_ : j % g_; };
  const std::int64_t row = cyclic(y), column = cyclic(x);
  cells_[row * g_ + column] += value;
}

std::vector<cf64> ReferenceGrid::transformed() const {
  const math::Fft fft(g_);
  const auto g = static_cast<std::size_t>(g_);
  std::vector<cf64> image = cells_;
  for (std::size_t y = 0; y < g; ++y) {
    // (-1)^(x + y) moves direction 0 to pixel G/2; Fft::inverse has the + sign and a factor 1/G.
    for (std::size_t x = 0; x < g; ++x) image[y * g + x] *= (x + y) % 2 == 0 ? 1.0 : -1.0;
    fft.inverse(&image[y * g]);
  }
  std::vector<cf64> column(g);
  for (std::size_t x = 0; x < g; ++x) {
    for (std::size_t y = 0; y < g; ++y) column[y] = image[y * g + x];
    fft.inverse(column.data());
    for (std::size_t y = 0; y < g; ++y) {
      image[y * g + x] = column[y] * static_cast<double>(g_ * g_);
    }
  }
  return image;
}

void add_tapered(const ReferenceGrid& xx, const ReferenceGrid& yy, const ReferenceGrid& xy,
                 const std::vector<double>& taper, ProductPlanes& planes) {
  const auto x = xx.transformed(), y = yy.transformed(), cross = xy.transformed();
  const std::size_t size = x.size(), plane = taper.size() > size ? size : 0;
  for (std::size_t p = 0; p < size; ++p) {
    planes.xx[p] += x[p].real() / taper[p];
    planes.yy[p] += y[p].real() / taper[plane + p];
    planes.xy[p] += cross[p] / taper[2 * plane + p];
  }
}

}  // namespace ryle::image::detail
