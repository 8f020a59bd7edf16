// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>

#include "ryle/simd/fft_pass.hpp"

/// What the instruction-set files of the all-sky imager implement. Plain types only: an inline
/// function compiled with the flags of one of those files could be the copy the linker keeps for
/// everybody.
namespace ryle::image::detail {

/// @pre at least two passes, the first with stride 1
template <class Real>
struct TransformOf {
  std::int64_t n = 0;
  int n_passes = 0;
  const simd::FftPass<Real>* passes = nullptr;
};
using CpuTransform = TransformOf<float>;

/// E-field imaging: what does not change with the channel.
struct FieldShape {
  CpuTransform transform;
  std::int64_t support = 0;
  int n_pols = 0;
  bool cross = false;                       ///< planes of XY* too
  std::int64_t n_columns = 0;               ///< columns with sky
  std::int64_t padded_rows = 0;             ///< G rounded up to the widest vector
  const std::int32_t* column_of = nullptr;  ///< [frequency index] column, -1 = no sky
  /// Blocks of `lanes` rows with sky: column c has blocks [block_begin[c], block_begin[c+1]).
  const std::int32_t* block_begin = nullptr;
  const std::int32_t* blocks = nullptr;
};
/// What an input brings to the grid of a channel.
struct FieldTerms {
  std::int64_t n = 0;                  ///< inputs of this polarization
  const std::int32_t* slot = nullptr;  ///< [n] place in the list of inputs
  const std::int32_t* cell = nullptr;  ///< [n] first cell, y * grid_x + x
  const float* weight_x = nullptr;     ///< [n][kWeightStride]
  const float* weight_y = nullptr;     ///< [n][kWeightStride]
  const float* aperture = nullptr;     ///< [n][k][k][re, im] instead of the weights
};
inline constexpr std::int64_t kWeightStride = 12;
struct FieldChannel {
  std::int64_t grid_x = 0, grid_y = 0;  ///< cells gridded on; those beyond box_* wrap
  std::int64_t box_x = 0, box_y = 0;    ///< cells transformed
  std::int64_t n_inputs = 0;
  const std::int32_t* inputs = nullptr;  ///< [slot] index in the blocks
  const float* gains = nullptr;          ///< [slot][re, im], height phase included
  std::int64_t n_pairs = 0;              ///< antennas with autocorrelations
  const std::int32_t* pairs = nullptr;   ///< [n_pairs][2] slots of X and Y, -1 = none
  FieldTerms terms[2];
};
/// Samples of one channel.
struct FieldSamples {
  const std::byte* data = nullptr;
  std::int64_t block_stride_bytes = 0;
  std::int64_t input_stride_bytes = 0;
  bool four_bits = false;
};
struct FieldScratch {
  float* inputs = nullptr;  ///< [slot][re, im][lanes]
  float* grid = nullptr;    ///< [grid_y][grid_x][re, im][lanes]
  float* middle = nullptr;  ///< [pol][column][box_y][re, im][lanes]
  float* points = nullptr;  ///< 4 transforms of padded_rows points
};

/// Products of an antenna pair or a cell of the uv plane: real parts of 4 planes, imaginary parts.
inline constexpr std::int64_t kCellFloats = 8;
/// Baselines whose functions begin at one cell (aligned down to a unit of cells).
struct UvGroup {
  std::int32_t offset = 0;  ///< of the first cell, in floats
  std::int32_t begin = 0, end = 0;
};
struct UvTable {
  const UvGroup* groups = nullptr;
  std::int64_t n_groups = 0;
  /// One record per baseline, so that they stream: weights of x [units * cells per unit], of y
  /// [rows], then the place in the list of products as bits.
  const float* records = nullptr;
  std::int64_t record_floats = 0;
  std::int64_t units = 0;
  std::int64_t rows = 0;
  std::int64_t row_stride = 0;  ///< of the grid, in floats
};

enum class SumType : std::uint8_t { ci32, ci64, cf32, cf64 };
/// Where the four products of an antenna pair a, b stand: XX, XY, YX, YY.
struct PairSource {
  std::int32_t index[4];   ///< -1 = absent
  std::int32_t conjugate;  ///< bit q: product q is stored conjugated
  std::int32_t a, b;       ///< places in the list of antennas
};
struct PairGains {
  const float* first;   ///< [antenna][re of X X Y Y, im of X X Y Y], 0 = not used
  const float* second;  ///< [antenna][re of X Y X Y, im of X Y X Y]
};

/// The 2-D transform of a half plane of Hermitian planes.
struct UvImage {
  CpuTransform transform;
  std::int64_t n_rows = 0;  ///< v = 0 .. n_rows - 1 hold data
  std::int64_t n_columns = 0;
  const std::int32_t* column_of = nullptr;  ///< [frequency index] column, -1 = no sky
  /// Of the transformed planes [XX, YY, U, V][frequency index y][column], in floats.
  std::int64_t row_stride = 0, plane_stride = 0;
};

/// Directions of a Fourier sum in blocks. @shape [pixel]
inline constexpr std::int64_t kDirectionsPerBlock = 96;

struct CpuKernels {
  int lanes;
  std::int64_t cells_per_unit;
  /// Adds spectra [first, last) (multiples of lanes) to planes [plane][column][padded_rows] and to
  /// autos [pair][4][lanes].
  void (*field_run)(const FieldShape&, const FieldChannel&, const FieldSamples&, std::int64_t first,
                    std::int64_t last, const FieldScratch&, float* planes, float* autos);
  /// products[source] = planes of the calibrated sums; `flip` bytes (or null) conjugate.
  void (*convert)(SumType type, const void* sums, const PairSource* sources, std::int64_t n,
                  const PairGains& gains, const std::uint8_t* flip, float* products);
  void (*grid)(const UvTable& table, const float* products, float* grid);
  /// Row transforms of v = first_row ... (lanes / 4 rows) of cells[row][G] in DFT order to
  /// middle[column / (lanes/4)][row][re, im][lanes].
  void (*uv_rows)(const UvImage&, const float* cells, std::int64_t row_stride,
                  std::int64_t first_row, float* middle, float* scratch);
  /// Columns of two neighbouring chunks (of lanes / 4 columns) to the planes.
  void (*uv_columns)(const UvImage&, const float* middle, std::int64_t chunk, float* planes,
                     float* scratch);
  /// phasors [antenna][kDirectionsPerBlock / group][re, im][group] of exp(-2 pi i (x l + y m + z
  /// t)), group = phasor_group directions.
  std::int64_t phasor_group_vis, phasor_group_field;
  void (*phasors)(const double* xyz_waves, std::int64_t n_antennas, const double* l,
                  const double* m, const double* t, std::int64_t group, float* phasors);
  /// sums[4][kDirectionsPerBlock] += 2 Re sum_{a<b} H_ab e_a conj(e_b), H over pairs in b-major
  /// order.
  void (*vis_sum)(const float* products, std::int64_t n_antennas, const float* phasors,
                  int n_planes, double* sums);
  /// sums[4][kDirectionsPerBlock] += products of B = sum_a E_a e_a over n_triples groups of three
  /// spectra; voltages [triple][antenna][spectrum 3][pol 2][re, im].
  void (*field_sum)(const float* voltages, std::int64_t n_triples, std::int64_t n_antennas,
                    const float* phasors, double* sums);
  /// Calibrated voltages of spectra [first, first + n_triples * 3) from blocks; slots [antenna][2].
  void (*field_unpack)(const FieldSamples&, const std::int32_t* inputs, const float* gains,
                       const std::int32_t* pairs, std::int64_t n_antennas, std::int64_t antenna,
                       std::int64_t first, std::int64_t n_groups, float* voltages, float* autos);
};
const CpuKernels& cpu_kernels_generic();
const CpuKernels& cpu_kernels_avx2();
const CpuKernels& cpu_kernels_avx512();

}  // namespace ryle::image::detail
