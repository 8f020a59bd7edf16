// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_runtime_api.h>

#include "ryle/engine/search/cuda/detect_work.hpp"

/// Private to the CUDA detector: launches of its kernels.
namespace ryle::search::detail {

/// Mean, rms and limits of every trial.
struct LevelWork {
  DeviceInput in;
  TrialStart* starts;
  TrialMoments* moments;
  SeriesStatistics* statistics;
  TrialScreen* screens;
  double threshold;
};
void launch_levels(const LevelWork& work, const BoxcarTable& table, cudaStream_t stream);

/// Rows of 16-bit sums that are read once: their moments and largest windows, then
/// statistics (to page-locked memory of the host, too) and the blocks that launch_screen() would
/// list, or fewer.
std::int64_t row_maxima(const RowWork& w);
/// Once on every device, before such a launch.
void allow_rows();
std::int64_t max_row_bytes();  ///< that a thread block of the current device can have
void launch_rows_once(const RowWork& w, cudaStream_t stream);
void launch_list(const RowWork& w, const BoxcarTable& table, SeriesStatistics* statistics,
                 SeriesStatistics* on_host, double threshold, const HitList& list,
                 cudaStream_t stream);

/// Blocks that may hold a hit, none missed, in any order.
void launch_screen(const DeviceInput& in, const BoxcarTable& table, const TrialScreen* screens,
                   const HitList& list, cudaStream_t stream);
/// Their hits, in place; width 0: none after all.
void launch_confirm(const DeviceInput& in, const BoxcarTable& table,
                    const SeriesStatistics* statistics, double threshold, const HitList& list,
                    cudaStream_t stream);

}  // namespace ryle::search::detail
