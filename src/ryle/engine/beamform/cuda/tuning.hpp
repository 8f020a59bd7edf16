// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

/// How the tensor-core kernels of the beamformer cut their work: data, never measured at run time
/// (beamform.md 9; Magro 2014 tuned accumulators and threads by exhaustion and compiled the result
/// in). Found by `bench_cuda beamform --tune`; docs/decisions/0017 has its measurements.
namespace ryle::beamform {

enum class CudaTuningKernel : std::uint8_t { direct, tiled, wgmma, small_beams };

struct CudaTuning {
  std::int64_t slabs_per_block = 1;     ///< 16 beams each: their weights share a block
  std::int64_t groups_per_item = 1;     ///< 64 spectra each: a block's share of a gulp
  std::int64_t warps = 12, stages = 2;  ///< few: of a block; of 4 KiB, of a warp's ring
  bool halves = false;                  ///< wgmma: half a group at a time, where A <= 32
};

struct CudaTuningRow {
  CudaTuningKernel kernel;
  std::int64_t max_slabs;  ///< of a channel; rows of a kernel ascend, the first that fits is taken
  int voltage_bytes;       ///< of a complex value, at most; 0 = powers
  CudaTuning tuning;
};

// Used on one NVIDIA H200 with 1024 channels (tiled: 64) x 4096 spectra.
inline constexpr CudaTuningRow kCudaTuning[] = {
    {CudaTuningKernel::direct, 1, 0, {1, 64}},
    {CudaTuningKernel::direct, 1, 16, {1, 64}},
    {CudaTuningKernel::direct, INT64_MAX, 0, {16, 64}},
    {CudaTuningKernel::direct, INT64_MAX, 16, {8, 32}},
    {CudaTuningKernel::tiled, INT64_MAX, 0, {8, 64}},
    {CudaTuningKernel::tiled, INT64_MAX, 16, {6, 64}},
    {CudaTuningKernel::wgmma, INT64_MAX, 0, {16, 32}},  // 4, 8 or 16 slabs
    {CudaTuningKernel::wgmma, INT64_MAX, 2, {8, 16, 12, 2, true}},
    {CudaTuningKernel::wgmma, INT64_MAX, 4, {16, 16, 12, 2, true}},
    {CudaTuningKernel::wgmma, INT64_MAX, 16, {16, 32}},
    {CudaTuningKernel::small_beams, INT64_MAX, 0, {}},
    {CudaTuningKernel::small_beams, INT64_MAX, 16, {}},
};

constexpr CudaTuning cuda_tuning(CudaTuningKernel kernel, std::int64_t n_slabs, int voltage_bytes) {
  for (const auto& row : kCudaTuning) {
    if (row.kernel == kernel && (row.voltage_bytes > 0) == (voltage_bytes > 0) &&
        voltage_bytes <= row.voltage_bytes && n_slabs <= row.max_slabs)
      return row.tuning;
  }
  return {1, 1};
}

/// Replaces the table from the next execute() on, for the search; nullptr = the table again.
void set_cuda_tuning(const CudaTuning* tuning);

}  // namespace ryle::beamform
