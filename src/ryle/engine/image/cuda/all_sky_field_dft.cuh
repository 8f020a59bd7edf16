// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_fp16.h>

#include "ryle/engine/image/cuda/all_sky_dft.cuh"

/// Private to the CUDA imager: direct Fourier sums of every spectrum on tensor cores. Pointers are
/// device memory.
/// @eq B_p(s) = sum_a s_a E_ap, s_a = exp(-2 pi i (nu/c) r_a.(l, m, n - 1)); planes are sums over
///     spectra of |B_x|^2, |B_y|^2, Re and Im B_x conj(B_y)
namespace ryle::image::detail {

/// How a thread block works: tiles of eight directions a warp, spectra a batch, and operands as one
/// half each or as the sum of two (see kDftSplitAntennas).
struct FieldDftShape {
  int tiles_per_warp = 0;  ///< 0: too many antennas for shared memory
  int n_spectra = 0;
  bool split = false;
};
/// Fp16 from one column of the operands to the next: fragments lie in different banks.
int field_dft_pitch(int n_antennas);
std::int64_t field_dft_batch_bytes(const FieldDftShape& shape, int n_antennas);
std::int64_t field_dft_shared_bytes(const FieldDftShape& shape, int n_antennas);
FieldDftShape field_dft_shape(int n_antennas, std::int64_t max_shared_bytes);
int field_dft_blocks(const FieldDftShape& shape, int n_directions);

struct FieldDftArgs {
  DftArgs dft;
  FieldBlocks blocks;
  int first_spectrum = 0;       ///< a multiple of the block length
  int n_batches = 0;            ///< the last may reach beyond the spectra: blocks hold zeros there
  int pitch = 0;                ///< field_dft_pitch()
  __half* operands = nullptr;   ///< [channel][n_batches], scratch
  const int2* input = nullptr;  ///< [a] X and Y, -1 = none
  const float4* factor = nullptr;  ///< [channel][a] X and Y
  const float* scale = nullptr;    ///< [channel] for 4-bit samples
  float* sums = nullptr;           ///< [channel][slice][4][direction], added to
};

void launch_field_dft(const FieldDftShape& shape, const FieldDftArgs& args, int n_slices,
                      cudaStream_t stream);
/// Slices of a channel to the first, and what antennas add by themselves taken out: powers
/// [channel][a][4], null = kept. sums becomes [channel][4][direction].
void launch_field_dft_join(const DftArgs& dft, int n_slices, const double* powers,
                           const float* sums, float* joined, cudaStream_t stream);

}  // namespace ryle::image::detail
