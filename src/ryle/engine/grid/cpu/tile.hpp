// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

/// What the instruction-set files of the gridder implement: one tile of cells and the samples
/// within its reach. Plain types only: an inline function compiled with the flags of one of those
/// files could be the copy the linker keeps for everybody.
namespace ryle::grid::detail {

inline constexpr int kCellsPerBlock = 4;
/// Samples taken at a time: their channels stay in the cache while all blocks use them.
inline constexpr std::int64_t kSegment = 8192;
inline constexpr std::int64_t kPad = 16;  ///< elements a vector may write beyond a list
inline constexpr int kMaxBins = 64;       ///< along a side of a tile

/// exp2(q^2-coefficient theta^2): a Gaussian; otherwise a cubic per interval of theta^2.
struct RadialTable {
  const float* cubic = nullptr;  ///< [n][4], lowest power first, argument 0 .. 1 in the interval
  std::int64_t n = 0;
  double per_rad2 = 0;  ///< intervals per theta^2
};

struct TileFunction {
  bool gauss = false;
  double log2_per_rad2 = 0;  ///< gauss: -1 / (2 sigma^2 ln 2)
  RadialTable table;         ///< where it is neither Gaussian nor exact
  /// K of a pair of unit vectors in double: where precision or function ask for it, else nullptr.
  double (*exact)(const void* function, const double* cell, const double* sample,
                  double chord) = nullptr;
  const void* function = nullptr;
  double chord = 0;   ///< of the support radius
  bool wide = false;  ///< theta^2 from the chord needs more terms (support above 1.6 deg)
};

struct TileGeometry {
  const double* center;  ///< [3]
  const double* east;
  const double* north;
  double x_min, x_max, y_min, y_max;  ///< of the cells
  std::int64_t n_blocks;
  const double* cells;  ///< [block][4][x, y, z]; of absent cells those of another one of the block
  const std::uint8_t* live;  ///< [block][4]
};

/// A sample seen from the center of a tile.
struct TileOffset {
  float east, north, outward;
  std::uint32_t sample;
};

struct TileSamples {
  const double *x, *y, *z;    ///< of all samples
  const std::uint32_t* list;  ///< of this segment, ascending
  const TileOffset* offsets;  ///< of this segment, or nullptr: `list` is the scratch's then
  std::int64_t n;
  const float* values;
  std::int64_t sample_stride, channel_stride;
  const float* weights;  ///< nullptr: all 1
  std::int64_t weight_sample_stride, weight_channel_stride;
  const std::uint8_t* flags;
};

/// Sums of one segment are added to these. @shape [block][4], those of channels [block][4][group]
struct TileSums {
  double* weighted;
  double *weight, *square, *magnitude, *count;                  ///< as if nothing were absent
  double *own_weight, *own_square, *own_magnitude, *own_count;  ///< per channel, nullptr: not asked
};

/// Bins of a tile's plane: samples of a row of bins stand in one run.
struct TileBins {
  double x0, y0, per_unit;
  int nx, ny;
  std::uint32_t start[kMaxBins * kMaxBins + 2];  ///< the last bin: samples without a weight
};

/// Buffers of a worker for `capacity` samples. @shape [capacity + kPad] unless said otherwise
template <class Real>
struct TileScratch {
  TileBins* bins;
  Real *x, *y, *z;      ///< offsets from the center, in the order of bins
  Real* u;              ///< shared weights, in the order of bins
  std::uint32_t* list;  ///< of the samples, where the plan has their offsets
  std::uint32_t* row;   ///< place in the list, in the order of bins
  std::uint32_t* bin;   ///< of the list
  std::uint32_t* kept;  ///< rows of the samples a block uses
  Real* kept_u;         ///< their shared weights
  Real* pair;    ///< [4][capacity + kPad] squared chords, then weights; below 0: out of reach
  Real* second;  ///< [4][capacity + kPad] weights of the moments
  Real* data;    ///< [capacity][group]
  Real *present, *valid;   ///< [capacity][group] u v and v, nullptr: not asked
  std::uint8_t* complete;  ///< [group] nothing of the channel is absent or weighted by itself
};

/// Tiles whose reach touches a cube of space, eight at a time. @shape bounds [row][tile]: center,
/// east, north, squared reach, least and greatest east, least and greatest north
struct SearchGroup {
  static constexpr int kTiles = 8, kRows = 14;
  alignas(64) double bounds[kRows][kTiles];
  std::uint32_t tile[kTiles];
};

/// Numbers of the tiles of each of `n` samples into `tiles`, kTiles beyond the last may be written;
/// returns how many.
using SearchKernel = std::int64_t (*)(const double* x, const double* y, const double* z,
                                      std::int64_t n, const SearchGroup* const* groups,
                                      const std::int32_t* n_groups, std::uint32_t* tiles,
                                      std::uint32_t* counts);

template <class Real>
struct TileKernel {
  const char* name;
  SearchKernel search;
  std::int64_t group;  ///< most channels at a time, a multiple of `lanes`
  std::int64_t lanes;
  /// Places the samples of a segment in the tile; those without a shared weight are left out.
  void (*locate)(const TileGeometry&, const TileFunction&, const TileSamples&, TileScratch<Real>&);
  /// Loads channels [first, first + n) of the segment; true where a value was absent or weights
  /// differ from channel to channel: then `present` and `valid`, if any, hold what there is.
  bool (*load)(const TileSamples&, std::int64_t first, std::int64_t n, std::int64_t padded,
               TileScratch<Real>&);
  /// All blocks of the tile, `padded` channels of the data loaded.
  void (*sum)(const TileGeometry&, const TileFunction&, const TileSamples&, std::int64_t padded,
              TileScratch<Real>&, const TileSums&);
};

const TileKernel<float>& tile_kernel_avx512();
const TileKernel<float>& tile_kernel_avx2();
const TileKernel<float>& tile_kernel_generic();
const TileKernel<double>& tile_kernel_avx512_f64();
const TileKernel<double>& tile_kernel_avx2_f64();
const TileKernel<double>& tile_kernel_generic_f64();

/// unit vectors of [begin, end); NaN where there is no such place. @unit degrees
struct DirectionsKernel {
  void (*run)(const double* longitude_deg, const double* latitude_deg, std::int64_t n, double* x,
              double* y, double* z);
};
const DirectionsKernel& directions_avx512();
const DirectionsKernel& directions_avx2();
const DirectionsKernel& directions_generic();

}  // namespace ryle::grid::detail
