// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/engine/search/cuda/normalize.hpp"
#include "ryle/engine/search/device_memory.hpp"
#include "ryle/engine/search/normalize_flag_reasons.hpp"

/// Private to the normalizer on the device: what its kernels take. Pointers are device memory.
namespace ryle::search::detail {

inline constexpr int kMaxMedianCells = 64;
inline constexpr int kMaxFlagChannels = 16384;
inline constexpr int kClippedLow = kNumFlagReasons, kClippedHigh = kNumFlagReasons + 1;
inline constexpr int kNormalizeCounters = kNumFlagReasons + 2;
inline constexpr int kBurstWidths = 6;  ///< boxcars of 1 .. 32 spectra

/// Mean and rms of one channel over one cell; rms 0: nothing there.
struct CellMoments {
  double mean, rms;
};
/// What samples of a cell become.
struct CellScale {
  float mean, inverse, code_scale;
  std::int32_t cause;
};
static_assert(sizeof(CellMoments) == kCellMoments_bytes && sizeof(CellScale) == kCellScale_bytes);

/// One gulp of all beams. @shape arrays of cells [beam][channel][cell]
struct NormalizeWork {
  DevicePower in;
  DeviceCodes out;
  int n_beams, n_channels, n_cells, cell_samples, median_cells, n_past_cells, past_room;
  std::int64_t absent_stride;          ///< of a beam, also of `masked`
  const std::uint8_t* user;            ///< [channel]
  std::uint8_t *absent, *masked;       ///< [beam][time]
  CellMoments *now, *usual, *typical;  ///< typical: [beam][channel]
  CellMoments* past;                   ///< [beam][channel][past_room], the last ones at the end
  CellScale* scales;
  std::uint8_t* bad;             ///< [beam][channel][cell]
  std::uint8_t* flags;           ///< [beam][channel]
  unsigned long long* counters;  ///< [beam][kNormalizeCounters]
  // nullptr where the configuration has no use for it
  const std::uint8_t* times;  ///< [channel][times_stride]: times that the user masks
  std::int64_t times_stride;
  int* n_samples;                 ///< [beam][channel][cell], of the moments
  float *common, *common_counts;  ///< [beam][absent_stride]: what the zero-DM filter takes out
  float* gains;                   ///< [beam][channel]: and how much of it
  std::uint8_t* flag_room;        ///< of FlagRoom; nullptr: shared memory
};

/// Spectral kurtosis: limits for every number of samples that occurs.
struct KurtosisWork {
  double degrees;
  std::uint8_t* seen;        ///< [cell_samples + 1]
  const double *low, *high;  ///< [cell_samples + 1]
};

/// Where thread blocks that decide among channels keep their arrays: shared memory while they fit,
/// else memory of their own, and then some blocks at a time.
struct FlagRoom {
  std::uint8_t* memory;  ///< nullptr: shared
  std::int64_t stride;   ///< of a block, bytes
  int first_block;
};

/// Decisions among the channels of a beam.
struct FlagWork {
  int degree;
  const double* basis;  ///< [channel][degree + 1]
  double bandpass_threshold, iqrm_threshold, cell_threshold;
  std::int64_t n_samples;
  bool enabled;
  double median_error;  ///< median_error()
};

/// Sums over groups of channels in rings of time.
struct BurstWork {
  float *sums, *counts;                        ///< [beam][group][ring]; nullptr: not wanted
  float* band;                                 ///< [beam][ring], in units of its noise
  std::int64_t ring, first_column, n, n_past;  ///< first_column: of this gulp, in the ring
  int n_groups;
  double threshold;
  int* found;  ///< [beam]
};

}  // namespace ryle::search::detail
