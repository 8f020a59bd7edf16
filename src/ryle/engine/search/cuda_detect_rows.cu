// SPDX-License-Identifier: BSD-3-Clause
// Rows of sums that are read once: which are, and their launches.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/search/cuda_detect.cuh"
#include "ryle/engine/search/cuda_detect_rows.cuh"

namespace ryle::search::detail {

std::int64_t row_maxima(const RowWork& w) {
  return std::int64_t{w.in.n_trials} * w.n_tiles * kRowWindows * 32;
}

template <int kBlocks>
void launch_measure(const RowWork& w, cudaStream_t stream) {
  const auto kernel = measure_rows<kBlocks>;
  const std::size_t bytes = 128 * static_cast<std::size_t>(2 * w.half + kRowAhead);
  const int threads = (w.half + kRowAhead + 31) / 32 * 32;
  RYLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(bytes)));
  RYLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
  kernel<<<static_cast<unsigned>(w.in.n_trials), threads, bytes, stream>>>(w);
  RYLE_CUDA_LAUNCHED("measure_rows");
}

void launch_rows_once(const RowWork& w, cudaStream_t stream) {
  static const bool free = std::getenv("RYLE_DETECT_ONCE") != nullptr &&
                           std::string(std::getenv("RYLE_DETECT_ONCE")) == "2";
  free ? launch_measure<1>(w, stream) : launch_measure<2>(w, stream);
}

void launch_list(const RowWork& w, const BoxcarTable& table, SeriesStatistics* statistics,
                 double threshold, const TokenList& list, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((w.in.n_trials + kListTrials - 1) / kListTrials);
  list_blocks<<<blocks, kListThreads, 0, stream>>>(w, table, statistics, threshold, list);
  RYLE_CUDA_LAUNCHED("list_blocks");
}

}  // namespace ryle::search::detail
