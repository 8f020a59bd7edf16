// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/engine/image/cuda/all_sky_half.hpp"
#include "ryle/engine/image/cuda/all_sky_kernels.cuh"

/// Private to the CUDA imager: E-field imaging with fp16 operands and fp32 sums. Pointers are
/// device memory.
namespace ryle::image::detail {

struct HalfArgs {
  FieldBlocks blocks;
  int n_channels = 0;
  int n_antennas = 0;
  int n_spectra = 0;
  int n_pixels = 0;
  int support = 0;
  int n_pairs = 0;
  int n_tiles = 0;
  int n_blocks = 0;                ///< of a channel
  int pitch = 0;                   ///< operand_pitch()
  int plane = 0;                   ///< half_plane()
  const int2* input = nullptr;     ///< [a] X and Y, -1 = none
  const float4* factor = nullptr;  ///< [channel][a] X and Y
  const float* scale = nullptr;    ///< [channel] for 4-bit samples
  const float* weights = nullptr;  ///< [channel][a][2 axes][support]
  const HalfSlot* slots = nullptr;
  const HalfTile* tiles = nullptr;
  const HalfPair* pairs = nullptr;
  const HalfBlock* pixels = nullptr;  ///< [n_blocks]
  float* planes = nullptr;            ///< [channel][slice][4][y][x], added to
};

/// Call once per plan before launching.
void prepare_half(std::int64_t shared_bytes);
void launch_half(const HalfArgs& args, int spectra_at_a_time, int n_slices,
                 std::int64_t shared_bytes, cudaStream_t stream);

}  // namespace ryle::image::detail
