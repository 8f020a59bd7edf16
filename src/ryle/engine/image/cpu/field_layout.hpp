// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/image/cpu/plan.hpp"

namespace ryle::image::detail {

/// Which columns and rows of the transform hold sky, for one instruction set.
struct SkyColumns {
  std::vector<std::int32_t> column_of;    ///< [frequency index] column, -1 = none
  std::vector<std::int32_t> block_begin;  ///< [column + 1]
  std::vector<std::int32_t> blocks;
  std::vector<std::int32_t> position;  ///< [sky] column * padded_rows + row (frequency index)
  std::int64_t n_columns = 0;
  std::int64_t padded_rows = 0;
};
SkyColumns make_sky_columns(const AllSkyConfig& config, const CpuOutput& output, int lanes);

/// Cells, weights and gains of the antennas on the grid of one channel; view() points into it.
struct FieldChannelData {
  FieldChannel view;
  std::vector<float> gains;  // [slot][re, im]
  std::vector<cf32> height;  // [slot]
  std::vector<std::int32_t> slot[2], cell[2];
  std::vector<float> weight_x[2], weight_y[2], aperture[2];
  std::vector<float> inverse_taper;  // [1 or 3][sky]

  FieldChannelData() = default;
  FieldChannelData(const FieldChannelData&) = delete;
  FieldChannelData& operator=(const FieldChannelData&) = delete;
};
void make_field_channel(const AllSkyConfig& config, const CpuRoles& roles, const CpuOutput& output,
                        std::int64_t channel, FieldChannelData& data);
void set_field_gains(const CpuRoles& roles, std::span<const cf32> gains, FieldChannelData& data);

/// Sum over antennas of power times |transform of its function|^2, at the pixels with sky.
/// @shape powers [place][XX, YY, Re XY*, Im XY*], out [n_sums][sky]
void autos_image(const AllSkyConfig& config, const CpuRoles& roles, const CpuOutput& output,
                 const FieldChannelData& data, const std::vector<double>& powers,
                 std::vector<double>& out);

}  // namespace ryle::image::detail
