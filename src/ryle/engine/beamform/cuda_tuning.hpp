// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

/// How the tensor-core kernels of the beamformer cut their work: data, never measured at run time
/// (beamform.md 9; Magro 2014 tuned accumulators and threads by exhaustion and compiled the result
/// in). Found by `bench_cuda beamform --tune`; docs/beams.md has its measurements.
namespace ryle::beamform {

enum class CudaTuningKernel : std::uint8_t { direct, tiled, wgmma, few };

struct CudaTuning {
  std::int64_t slabs_per_block = 1;  ///< 16 beams each: their weights share a block
  std::int64_t groups_per_item = 1;  ///< 64 spectra each: a block's share of a gulp
  bool stores_stream = true;         ///< staged rows of the output are the first to leave the cache
  /// few: blocks of a multiprocessor, their warps, stages of 4 KiB of a warp's ring, and whether
  /// samples are the first to leave the cache.
  std::int64_t blocks = 1, warps = 8, stages = 2;
  bool read_once = false;
};

struct CudaTuningRow {
  CudaTuningKernel kernel;
  std::int64_t max_slabs;  ///< of a channel; rows of a kernel ascend, the first that fits is taken
  bool voltage;
  CudaTuning tuning;
};

// Used on one NVIDIA H200 with 1024 channels (tiled: 64) x 4096 spectra.
inline constexpr CudaTuningRow kCudaTuning[] = {
    {CudaTuningKernel::direct, 1, false, {1, 64}},
    {CudaTuningKernel::direct, 1, true, {1, 64}},
    {CudaTuningKernel::direct, INT64_MAX, false, {16, 64}},
    {CudaTuningKernel::direct, INT64_MAX, true, {8, 32}},
    {CudaTuningKernel::tiled, INT64_MAX, false, {8, 64}},
    {CudaTuningKernel::tiled, INT64_MAX, true, {6, 64}},
    {CudaTuningKernel::wgmma, INT64_MAX, false, {16, 32}},  // 4, 8 or 16 slabs
    {CudaTuningKernel::wgmma, INT64_MAX, true, {16, 32}},
    {CudaTuningKernel::few, INT64_MAX, false, {1, 1, true, 1, 8, 2, false}},
    {CudaTuningKernel::few, INT64_MAX, true, {1, 1, true, 1, 8, 2, false}},
};

constexpr CudaTuning cuda_tuning(CudaTuningKernel kernel, std::int64_t n_slabs, bool voltage) {
  for (const auto& row : kCudaTuning) {
    if (row.kernel == kernel && row.voltage == voltage && n_slabs <= row.max_slabs)
      return row.tuning;
  }
  return {1, 1};
}

/// Replaces the table from the next execute() on, for the search; nullptr = the table again.
void set_cuda_tuning(const CudaTuning* tuning);

}  // namespace ryle::beamform
