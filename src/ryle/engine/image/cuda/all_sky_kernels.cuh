// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

#include "ryle/engine/image/cuda/all_sky_fft.cuh"
#include "ryle/engine/image/cuda/all_sky_lists.hpp"

/// Private to the CUDA imager: what its kernels take. Pointers are device memory.
namespace ryle::image::detail {

inline constexpr int kGatherThreads = 256;

/// Sums of products wherever they come from: exactly one of the pointers is set.
struct SumsView {
  enum class Kind : std::uint8_t { tiles, ci32, ci64, cf32, cf64 };
  Kind kind = Kind::ci64;
  const void* data = nullptr;
  int tile_shift = 0;
  int n_inputs = 0;
  std::int64_t channel_stride = 0;  ///< elements of `data` between channels (tiles: int32)
};

/// Antennas that are used, and what calibrates them.
struct VisArray {
  int n_antennas = 0;            ///< a, b below are indices of used antennas
  bool autos = false;            ///< baselines a <= b instead of a < b
  std::int64_t n_baselines = 0;  ///< b (b - 1)/2 + a, with autos b (b + 1)/2 + a
  const int* input = nullptr;    ///< [a][pol], -1 = none
  const float2* factor =
      nullptr;  ///< [channel][a][pol]: gain times phase of the height, 0 = unused
  const std::uint8_t* flip = nullptr;  ///< [baseline] 1: the footprint lies at b - a
};

/// Calibrated XX, YY, (XY + YX)/2 and -i (XY - YX)/2 of every baseline, [channel][baseline], eight
/// floats: the two linear products, Re and Im of XY*, each Hermitian.
void launch_products(const SumsView& sums, const VisArray& array, int n_channels,
                     const std::uint32_t* counts, unsigned long long* pair_counts, float4* products,
                     cudaStream_t stream);

/// 1-D weights of every footprint, [channel][footprint][2 axes][taps].
/// Direct: w around the difference of two positions. Correlated: w_a correlated with w_b.
struct WeightTables {
  int n_antennas = 0;
  bool autos = false;
  std::int64_t n_baselines = 0;
  int support = 0;
  double beta = 0;                     ///< of the whole function, beta_per_cell * support
  const double2* position = nullptr;   ///< [channel][a] cells
  const std::uint8_t* flip = nullptr;  ///< [baseline]
};
void launch_antenna_weights(const WeightTables& tables, int n_channels, float* weights,
                            cudaStream_t stream);
void launch_baseline_weights(const WeightTables& tables, int n_channels, bool correlated,
                             float* weights, cudaStream_t stream);

/// Lays values on the cells of the tiles of `work`; a thread block owns a tile.
struct GatherArgs {
  const TileWork* work = nullptr;
  std::int64_t n_work = 0;
  const std::uint32_t* entries = nullptr;
  const float* weights = nullptr;
  std::int64_t n_footprints = 0;  ///< per channel
  int n_taps = 0;
  int n_pixels = 0;
  int first_channel = 0;  ///< of values and grid
  int n_planes = 1;       ///< values per channel: [channel][plane][footprint]
};
/// Eight floats a value (four complex products): grid [channel][y][x][8].
void launch_gather_products(const GatherArgs& args, const float4* values, float4* grid,
                            cudaStream_t stream);
/// Four floats a value (X and Y of one spectrum): grid [channel][plane][y][x][4].
void launch_gather_fields(const GatherArgs& args, const float4* values, float4* grid,
                          cudaStream_t stream);

/// How sums become pixels.
struct FinishArgs {
  const double* pairs = nullptr;                ///< [channel][3] pairs of inputs behind XX, YY, XY
  const unsigned long long* counted = nullptr;  ///< the same, counted on the device
  double times = 1;                             ///< spectra behind each
  const float* inverse_taper = nullptr;         ///< [taper][n_tapers][y][x], NaN below the horizon
  int n_tapers = 1;                             ///< 1 of all products, or 3: XX, YY, XY
  bool taper_per_channel = false;
  int n_channels = 0;
  int n_channels_per_bin = 1;
  int n_planes = 4;
  int n_pols = 2;
  bool stokes = true;
  float* pixels = nullptr;  ///< [bin][plane][y][x]
};
/// Rows of the Hermitian grid behind products, two real images to a transform: [transform][pair][y]
/// [x]. per_bin: channels of a bin are added first, n_transforms = bins.
void launch_product_rows(const GridFft& fft, const float4* grid, int n_channels, int per_transform,
                         int n_transforms, float2* rows, cudaStream_t stream);
void launch_product_columns(const GridFft& fft, const float2* rows, int transforms_per_bin,
                            int n_transforms, int n_bins, const FinishArgs& finish,
                            cudaStream_t stream);
/// Rows of fields on the grid [transform][y][x][4]: [transform][pol][y][x].
void launch_field_rows(const GridFft& fft, const float4* grid, int n_transforms, float2* rows,
                       cudaStream_t stream);
/// Columns, products, sums over spectra: adds to planes [channel][4][y][x] = |B_x|^2, |B_y|^2, Re
/// and Im B_x conj(B_y). rows: [channel][spectrum][pol][y][x].
void launch_field_columns(const GridFft& fft, const float2* rows, int n_channels, int n_spectra,
                          float* planes, cudaStream_t stream);
/// Dynamic shared memory of the transforms; call once per plan before launching.
void prepare_transforms();
inline constexpr int kMaxGrid = 4096;  ///< largest transform

/// Voltages [channel][block][input] as they come, ci4 or ci8.
struct FieldBlocks {
  const std::byte* data = nullptr;
  std::int64_t channel_stride = 0;
  std::int64_t block_stride = 0;
  std::int64_t input_stride = 0;
  bool nibbles = true;
};
/// Calibrated fields (X, Y) of spectra [first, first + n) and channels [first_channel, ...):
/// [channel][spectrum][a].
void launch_fields(const FieldBlocks& blocks, const VisArray& array, int first_channel,
                   int n_channels, int first_spectrum, int n_spectra, float4* fields,
                   cudaStream_t stream);
/// Adds sums over n_spectra of calibrated |E_x|^2, |E_y|^2, Re and Im E_x conj(E_y) to powers
/// [channel][a][4]; the sums of one call are exact integers before they are calibrated.
void launch_powers(const FieldBlocks& blocks, const VisArray& array, int n_channels, int n_spectra,
                   double* powers, cudaStream_t stream);
/// What autocorrelations add to the grid: sum_a P_a K_aa(dx, dy), dx, dy >= 0: [channel][4][k][k].
void launch_auto_lags(const double* powers, const float* weights, int n_antennas, int support,
                      int n_channels, float* lags, cudaStream_t stream);
/// planes [channel][slice][4][y][x]; lags may be null.
void launch_field_finish(int n_pixels, const float* planes, int n_slices, const float* lags,
                         int support, const FinishArgs& finish, cudaStream_t stream);

}  // namespace ryle::image::detail
