// SPDX-License-Identifier: BSD-3-Clause
// Rows of sums that are read once: which are, and their launches.
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/cuda/shared_limit.hpp"
#include "ryle/engine/search/cuda/detect.cuh"
#include "ryle/engine/search/cuda/detect_rows.cuh"

namespace ryle::search::detail {

std::int64_t row_maxima(const RowWork& w) {
  return std::int64_t{w.in.n_trials} * w.n_tiles * kRowWindows * 32;
}

void allow_rows() {
  cuda::allow_all_shared(measure_rows);
  RYLE_CUDA(
      cudaFuncSetAttribute(measure_rows, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
}
std::int64_t max_row_bytes() { return cuda::max_dynamic_shared(measure_rows); }

void launch_rows_once(const RowWork& w, cudaStream_t stream) {
  const auto bytes = static_cast<std::size_t>(row_bytes(w));
  measure_rows<<<static_cast<unsigned>(w.in.n_trials), row_threads(w.half), bytes, stream>>>(w);
  RYLE_CUDA_LAUNCHED("measure_rows");
}

void launch_list(const RowWork& w, const BoxcarTable& table, SeriesStatistics* statistics,
                 SeriesStatistics* on_host, double threshold, const HitList& list,
                 cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((w.in.n_trials + kListTrials - 1) / kListTrials);
  list_blocks<<<blocks, kListThreads, 0, stream>>>(w, table, statistics, on_host, threshold, list);
  RYLE_CUDA_LAUNCHED("list_blocks");
}

}  // namespace ryle::search::detail
