// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/engine/image/cuda/all_sky_fused.hpp"
#include "ryle/engine/image/cuda/all_sky_kernels.cuh"

/// Private to the CUDA imager: the fused E-field kernel. Pointers are device memory.
namespace ryle::image::detail {

struct FusedArgs {
  FieldBlocks blocks;
  int n_channels = 0;
  int n_antennas = 0;
  int n_spectra = 0;
  int n_rows = 0;
  int n_tile_columns = 0;
  int n_quads = 0;
  int n_empty = 0;
  int n_rounds = 0;
  int first_column[kFusedBlocks] = {};
  int n_groups = 0;
  bool transposed = false;
  bool first_gulp = false;               ///< planes are written, not added to
  const int2* input = nullptr;           ///< [a] X and Y, -1 = none
  const float4* factor = nullptr;        ///< [channel][a] X and Y
  const FusedTile* tiles = nullptr;      ///< [channel][share][n_quads][4]
  const std::uint32_t* empty = nullptr;  ///< [channel][n_empty]
  const std::uint32_t* who = nullptr;    ///< [channel][share][4 n_rounds]
  const float* weights = nullptr;        ///< [channel][share][n_rounds][32]
  float* planes = nullptr;  ///< [channel][slice][4][y][x]; columns beyond the sky are not touched
};

/// Call once per plan before launching.
void prepare_fused(std::int64_t shared_bytes);
void launch_fused(const FusedArgs& args, int n_slices, std::int64_t shared_bytes,
                  cudaStream_t stream);

}  // namespace ryle::image::detail
