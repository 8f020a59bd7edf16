// SPDX-License-Identifier: BSD-3-Clause
// Passes over all samples and cells, launched.
#include "ryle/engine/search/cuda/normalize_codes.cuh"

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/search/cuda/normalize.cuh"
#include "ryle/engine/search/cuda/normalize_common.cuh"

namespace ryle::search::detail {
namespace {

unsigned blocks_for(std::int64_t n, int threads) {
  return static_cast<unsigned>((n + threads - 1) / threads);
}
std::int64_t n_rows_of(const NormalizeWork& w) {
  return static_cast<std::int64_t>(w.n_beams) * w.n_channels;
}

}  // namespace

void launch_absent(const NormalizeWork& w, cudaStream_t stream) {
  absent_kernel<<<dim3(blocks_for(w.in.n, 256), static_cast<unsigned>(w.n_beams)), 256, 0,
                  stream>>>(w);
  RYLE_CUDA_LAUNCHED("absent spectra");
}

void launch_measure(const NormalizeWork& w, cudaStream_t stream) {
  const std::int64_t jobs =
      static_cast<std::int64_t>(w.n_beams) * ((w.n_channels + 31) / 32) * w.n_cells;
  measure_kernel<<<blocks_for(jobs, kMeasureWarps), 32 * kMeasureWarps, 0, stream>>>(w, jobs);
  RYLE_CUDA_LAUNCHED("moments of cells");
}

void launch_medians(const NormalizeWork& w, cudaStream_t stream) {
  const std::int64_t jobs = n_rows_of(w) * w.n_cells;
  const auto kernel = w.median_cells <= 16 ? medians_kernel<16> : medians_kernel<kMaxMedianCells>;
  kernel<<<blocks_for(jobs, 128), 128, 0, stream>>>(w, jobs);
  RYLE_CUDA_LAUNCHED("running medians");
}

void launch_scales(const NormalizeWork& w, cudaStream_t stream) {
  const std::int64_t jobs = n_rows_of(w) * w.n_cells;
  scales_kernel<<<blocks_for(jobs, 256), 256, 0, stream>>>(w, jobs);
  RYLE_CUDA_LAUNCHED("scales of cells");
}

void launch_codes(const NormalizeWork& w, const BurstWork& b, int beam, int n_beams,
                  cudaStream_t stream) {
  const CodeGroups groups = code_groups(w, b);
  const bool words = whole_words(w);
  auto kernel = words ? codes_kernel<true, false, true> : codes_kernel<false, false, true>;
  if (w.gains != nullptr)
    kernel = words ? codes_kernel<true, true, true> : codes_kernel<false, true, true>;
  else if (words && w.times == nullptr)  // nearly always
    kernel = codes_kernel<true, false, false>;
  kernel<<<dim3(static_cast<unsigned>(w.n_cells * groups.parts_of_cell),
                static_cast<unsigned>(groups.n), static_cast<unsigned>(n_beams)),
           kWriteThreads, 0, stream>>>(w, b, groups, beam);
  RYLE_CUDA_LAUNCHED("codes");
}

void launch_common(const NormalizeWork& w, bool weighted, cudaStream_t stream) {
  const auto n_beams = static_cast<unsigned>(w.n_beams);
  common_kernel<<<dim3(blocks_for(w.in.n, 256), n_beams), 256, 0, stream>>>(w);
  RYLE_CUDA_LAUNCHED("common signal");
  response_kernel<<<dim3(blocks_for(w.n_channels, kResponseThreads), n_beams), kResponseThreads, 0,
                    stream>>>(w, weighted);
  RYLE_CUDA_LAUNCHED("responses of channels");
}

void launch_keep_cells(const NormalizeWork& w, cudaStream_t stream) {
  if (w.past_room == 0) return;
  keep_cells_kernel<<<blocks_for(n_rows_of(w), 256), 256, 0, stream>>>(w, n_rows_of(w));
  RYLE_CUDA_LAUNCHED("past cells");
}

}  // namespace ryle::search::detail
