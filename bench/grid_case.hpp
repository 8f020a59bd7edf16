// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ryle/device/buffer.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/engine/grid/grid.hpp"

/// The benchmark cases A, B and H of the gridder (grid.md 14): the same positions and values as
/// numpy's default_rng makes, to the bit but for the last digits of sines.
namespace ryle::bench {

struct GridCase {
  char name = 'A';
  std::vector<double> longitude_deg, latitude_deg;            ///< of samples
  std::vector<double> cell_longitude_deg, cell_latitude_deg;  ///< x fastest
  std::int64_t width = 0, height = 0, n_channels = 0;
  Buffer<float> values;    ///< [channel][sample]
  bool sums_agree = true;  ///< sums of positions, and of channel 0 of A and B, are those of grid.md

  std::int64_t n_samples() const { return static_cast<std::int64_t>(longitude_deg.size()); }
  std::int64_t input_bytes() const { return 16 * n_samples() + values.bytes(); }
};

/// Which part of a case: every `sample_step`-th sample, the middle of the map.
struct GridCaseSize {
  std::int64_t n_channels = 1;
  std::int64_t sample_step = 1;
  double map_share = 1;  ///< of the map's width
};

/// @param name 'A' (521 drift scans), 'B' (2e6 positions of 5 x 5 deg), 'H' (1.5e7 of them)
GridCase make_grid_case(Queue& queue, char name, const GridCaseSize& size);

/// The function of all cases, to 5 sigma, for their channels.
grid::Config grid_config_of(const GridCase& c, const std::string& implementation);

/// What was made of a cell.
struct GridCellSeen {
  std::int64_t count = 0;
  double weight = 0;
};
/// Some cells of channels 0 .. n_channels - 1 against the direct sum in double: counts equal,
/// values and weights to 2e-6 where the weight exceeds 1 (grid.md 4). @param value of a channel's
/// cell
bool verify_grid_cells(
    Queue& host, const GridCase& c, const float* values,
    const std::function<GridCellSeen(std::int64_t channel, std::int64_t cell)>& seen,
    const std::function<float(std::int64_t channel, std::int64_t cell)>& value);

inline constexpr double kGridSigma_deg = 2.9 / 60 / 2.3548200450309493;  ///< FWHM 2.9'
inline constexpr double kGridCell_deg = 120.0 / 3600;

}  // namespace ryle::bench
