// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

#include "ryle/core/samples.hpp"
#include "ryle/engine/correlate/cuda/gulp.hpp"
#include "ryle/engine/correlate/cuda/tuning.hpp"
#include "ryle/engine/correlate/cuda/wgmma_cta_pairs.hpp"
#include "ryle/engine/correlate/cuda/wgmma_layout.hpp"

/// Private to the CUDA correlator: what its kernels take. Pointers are device memory.
namespace ryle::correlate::detail {

/// Most spectra an int32 sum of full-range ci8 (or 16 x ci4) products holds, in whole blocks: 1023
/// * 64 <= 65 535.
inline constexpr std::int64_t kSpectraPerInt32 = 65'472;
/// fp32 sums go into double this often, so that their rounding does not grow with the length of a
/// dump.
inline constexpr std::int64_t kSpectraPerFloat = 1024;
/// Tensor cores cut, not round, fp32 sums of halves: after n spectra up to n 2^-23 of
/// sqrt(P_i P_j), P = sum |v|^2, may be missing (correlate.md T-XE-06 allows 5e-4). Sums in
/// registers are that long at most; those in device memory take them, rounded, until they go into
/// double.
inline constexpr std::int64_t kSpectraPerF16Sum = 4096;
inline constexpr std::int64_t kSpectraPerF16Tile = 65'536;

/// Plain kernel for every format: adds the gulp to sums[channel][pair] (canonical order). Integer
/// formats use `integer` and are exact; cf16, cf32 use `real`. Integer gulps of 4 and 8 bits hold
/// at most kSpectraPerInt32 spectra.
void launch_simt(SampleFormat format, const CudaGulp& gulp, ci64* integer, cf64* real,
                 cudaStream_t stream);

/// Tensor-core kernel for ci4 and ci8, mma.sync m16n8k32: adds to int32 sums held tile by tile in
/// the registers' order.
struct MmaPlan {
  std::int64_t n_tiles = 0;            ///< per channel, tiles on and below the diagonal
  std::int64_t n_tile_sums = 0;        ///< int32 values of all tiles and channels
  std::int64_t concurrent_blocks = 0;  ///< thread blocks the device runs at a time
};
MmaPlan plan_mma_s8(SampleFormat format, std::int64_t n_inputs, std::int64_t n_channels,
                    int device);
/// overwrite: what the tiles held is forgotten, without a pass that clears them where possible.
void launch_mma_s8(SampleFormat format, const MmaPlan& plan, const CudaGulp& gulp, bool overwrite,
                   std::int32_t* tile_sums, cudaStream_t stream);
/// Adds the tiles to sums[channel][pair] and clears them.
void launch_fold_mma_s8(SampleFormat format, const MmaPlan& plan, int n_inputs, int n_channels,
                        std::int32_t* tile_sums, ci64* sums, cudaStream_t stream);

/// Hopper's kernel for ci8 (cuda/wgmma_s8.cu): adds to int32 sums in its own order, see
/// cuda/wgmma_layout.hpp.
struct WgmmaPlan {
  wgmma::Layout layout;
  CudaTuning tuning{};
  int shift = 0;                              ///< sums are 2^shift times those of the codes
  std::int64_t n_ints = 0;                    ///< sums of tiles, then of inputs
  std::int64_t concurrent_blocks = 0;         ///< thread blocks the device runs at a time
  wgmma::CtaPairs cta_pairs;                  ///< without their list
  std::vector<wgmma::CtaPair> cta_pair_list;  ///< for WgmmaMemory::cta_pairs
};
struct WgmmaMemory {
  std::int32_t* sums = nullptr;
  int* counter = nullptr;       ///< one word, 0
  int* next_counter = nullptr;  ///< another, which the kernel makes 0
  const wgmma::CtaPair* cta_pairs = nullptr;
};
/// @pre the device has compute capability 9.0
WgmmaPlan plan_wgmma_s8(std::int64_t n_inputs, std::int64_t n_channels, int device);
/// overwrite: what the sums held is forgotten.
void launch_wgmma_s8(const WgmmaPlan& plan, const CudaGulp& gulp, bool overwrite,
                     const WgmmaMemory& memory, cudaStream_t stream);
/// The same with three warpgroups where takes_three() says so, after one prepare_wgmma_s8_three()
/// on the device.
void prepare_wgmma_s8_three();
bool takes_three(const WgmmaPlan& plan, const CudaTuning& tuning);
void launch_wgmma_s8_three(const WgmmaPlan& plan, const CudaGulp& gulp, bool overwrite,
                           const WgmmaMemory& memory, cudaStream_t stream);
/// Adds them to totals[channel][pair] and leaves them as they are.
void launch_fold_wgmma_s8(const WgmmaPlan& plan, const std::int32_t* sums, ci64* totals,
                          cudaStream_t stream);
/// The same for ci4, which it widens to bytes; launch_fold_wgmma_s8() takes its sums.
WgmmaPlan plan_wgmma_s4(std::int64_t n_inputs, std::int64_t n_channels, int device);
void launch_wgmma_s4(const WgmmaPlan& plan, const CudaGulp& gulp, bool overwrite,
                     const WgmmaMemory& memory, cudaStream_t stream);
/// What set_cuda_tuning() put in the place of the table's row, or the row.
CudaTuning tuning_now(const CudaTuning& row);

/// Tensor-core kernels for cf16: fp32 sums, in the order of the kernel for bytes of the same kind.
/// Equal gulps give equal bits. A gulp has kSpectraPerF16Sum spectra at most.
struct F16Plan {
  std::int64_t n_sums = 0;
  std::int64_t n_part_sums = 0;  ///< sums of parts of what is cut along time
  std::int64_t n_arrived = 0;    ///< words, 0 before the first launch
};
struct F16Memory {
  float* sums = nullptr;
  float* parts = nullptr;
  int* arrived = nullptr;
  int* counter = nullptr;  ///< as those of WgmmaMemory
  int* next_counter = nullptr;
  const wgmma::CtaPair* cta_pairs = nullptr;
};
struct WgmmaF16Plan : F16Plan {
  wgmma::Layout layout;
  CudaTuning tuning{};
  std::int64_t concurrent_blocks = 0;         ///< thread blocks the device runs at a time
  wgmma::CtaPairs cta_pairs;                  ///< without their list
  std::vector<wgmma::CtaPair> cta_pair_list;  ///< for F16Memory::cta_pairs
};
/// @pre the device has compute capability 9.0
WgmmaF16Plan plan_wgmma_f16(std::int64_t n_inputs, std::int64_t n_channels, int device);
/// overwrite: what the sums held is forgotten.
void launch_wgmma_f16(const WgmmaF16Plan& plan, const CudaGulp& gulp, bool overwrite,
                      const F16Memory& memory, cudaStream_t stream);
/// Adds them to totals[channel][pair] and leaves them as they are.
void launch_fold_wgmma_f16(const WgmmaF16Plan& plan, const float* sums, cf64* totals,
                           cudaStream_t stream);
/// mma.sync m16n8k16, compute capability 8.0 and newer; no parts and no counters.
F16Plan plan_mma_f16(std::int64_t n_inputs, std::int64_t n_channels, int device);
void launch_mma_f16(const CudaGulp& gulp, bool overwrite, float* sums, cudaStream_t stream);
void launch_fold_mma_f16(int n_inputs, int n_channels, const float* sums, cf64* totals,
                         cudaStream_t stream);

}  // namespace ryle::correlate::detail
