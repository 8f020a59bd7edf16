// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/device/buffer.hpp"
#include "ryle/engine/image/cpu/pairs.hpp"
#include "ryle/engine/image/cpu/plan.hpp"

/// Where baselines lie on half the uv plane. Private to the engine.
namespace ryle::image::detail {

/// Half a uv plane with margins: rows v = -margin .. G/2 + margin, columns u = -G/2 - margin ...
/// Cells are cyclic; fold_row() brings the margins and the other half in.
struct UvGeometry {
  std::int64_t g = 0;
  std::int64_t taps = 0;    ///< cells of a function per axis: k, or 2k - 1 when correlated
  std::int64_t margin = 0;  ///< cells
  std::int64_t columns = 0;
  std::int64_t rows = 0;
  std::int64_t cells_per_unit = 1;
  std::int64_t row_stride() const { return columns * kCellFloats; }
  std::int64_t size() const { return rows * row_stride(); }
  std::int64_t record_floats() const { return (units() * cells_per_unit + taps + 1 + 3) / 4 * 4; }
  std::int64_t units() const { return (taps + 2 * cells_per_unit - 2) / cells_per_unit; }
};
UvGeometry make_uv_geometry(const AllSkyConfig& config, const CpuKernels& kernels);

/// Baselines of one channel, sorted by the cell where they begin. part = range of the pair list.
struct UvChannel {
  struct Part {
    std::vector<UvGroup> groups;
    Buffer<float> records;  // UvTable; sources are relative to the first pair of the part
  };
  std::vector<Part> parts;
  std::vector<std::uint8_t> flip;  // [pair]: laid down as b, a
  std::vector<cf64> heights;       // [place]
  std::int64_t n_rows = 0;         // rows v = 0 .. n_rows - 1 hold data after folding
  UvTable table(const UvGeometry& geometry, std::int64_t part) const;
};
UvChannel make_uv_channel(const AllSkyConfig& config, const CpuRoles& roles,
                          const std::vector<PairSource>& pairs, const UvGeometry& geometry,
                          std::int64_t channel, std::int64_t n_parts);

/// cells [G][8] in DFT order of row v of the Hermitian plane, from the sum of `n` grids.
void fold_row(const UvGeometry& geometry, const float* const* grids, std::int64_t n, std::int64_t v,
              float* cells);

}  // namespace ryle::image::detail
