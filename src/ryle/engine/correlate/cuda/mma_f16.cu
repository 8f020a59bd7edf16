// SPDX-License-Identifier: BSD-3-Clause
// Launches of cuda/mma_f16.cuh.
#include "ryle/engine/correlate/cuda/mma_f16.cuh"

#include "ryle/core/baseline.hpp"
#include "ryle/engine/correlate/cuda/kernels.cuh"
#include "ryle/engine/correlate/cuda/mma_prepare.hpp"

namespace ryle::correlate::detail {

using namespace mma;

F16Plan plan_mma_f16(std::int64_t n_inputs, std::int64_t n_channels, int device) {
  prepare(correlate_mma_f16, device, "cuda:mma_f16");
  F16Plan plan;
  plan.n_sums = checked_product({n_channels, Tiles::n_tiles(n_inputs), Tiles::kSumsPerTile},
                                "fp32 tile sums");
  return plan;
}

void launch_mma_f16(const CudaGulp& gulp, bool overwrite, float* sums, cudaStream_t stream) {
  const auto n_tiles = static_cast<int>(Tiles::n_tiles(gulp.n_inputs));
  correlate_mma_f16<<<static_cast<unsigned>(n_tiles) * static_cast<unsigned>(gulp.n_channels),
                      kThreads, kSharedBytes, stream>>>(gulp, n_tiles, overwrite, sums);
  RYLE_CUDA_LAUNCHED("correlate_mma_f16");
}

void launch_fold_mma_f16(int n_inputs, int n_channels, const float* sums, cf64* totals,
                         cudaStream_t stream) {
  const auto n_blocks = static_cast<unsigned>(n_inputs) * static_cast<unsigned>(n_channels);
  fold_mma_f16<<<n_blocks, 128, 0, stream>>>(n_inputs, static_cast<int>(Tiles::n_tiles(n_inputs)),
                                             sums, reinterpret_cast<double*>(totals));
  RYLE_CUDA_LAUNCHED("fold_mma_f16");
}

}  // namespace ryle::correlate::detail
