// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/engine/search/search.hpp"

/// Private to the CUDA detector: what its kernels take. Pointers are device memory. Without headers
/// of CUDA, so that tests run kernels on the host.
namespace ryle::search::detail {

inline constexpr int kMaxOctaves = 20;
inline constexpr int kMaxWidths = 64;
inline constexpr int kMaxHalvings = 6;
inline constexpr int kFullSlots = 16;   ///< windows on data not halved, at most
inline constexpr int kHalvedSlots = 4;  ///< on each level of halved data
inline constexpr int kScreenSlots = kFullSlots + kHalvedSlots * kMaxHalvings;
inline constexpr int kSegment = 4096;  ///< starts of a thread block: 64 of every halving

/// Boxcars by octave, as octaves() lists them, and the windows they are screened with: each its
/// own, or few windows that cover several widths each (units below the mean count as the mean, so
/// that a window holds at least what any boxcar in it does). Covering, one block of noise in a
/// thousand is looked at in vain at a threshold of 6, one in twenty at 5.
struct BoxcarTable {
  bool covering;
  int n_octaves, n_widths, max_halvings;
  struct {
    int halvings, first, n;  ///< widths[first .. first + n)
    unsigned slots;          ///< of its level, bit per window
    unsigned row_slots;      ///< the same of windows on cells (cuda/detect_rows.cuh)
  } octaves[kMaxOctaves];
  int widths[kMaxWidths];     ///< in samples of the halved data
  int slot[kMaxWidths];       ///< of the window, all levels
  int windows[kScreenSlots];  ///< in samples of the halved data
  int row_slot[kMaxWidths];   ///< of the window on cells, all levels
};
BoxcarTable boxcar_table(std::int64_t max_width, double threshold);
inline constexpr double kCoveringThreshold = 5;  ///< and above

struct DeviceInput {
  const void* sums;
  bool wide;  ///< u32
  std::int64_t stride, n_columns, first_tick, first_start, end_start, stat_first, stat_end;
  const float* weights;
  std::int64_t weight_stride;
  float level;  ///< of all columns, without weights
  int n_trials;
};

/// Median and clip of a trial, and the columns its statistics come from.
struct TrialStart {
  long long n_columns;
  double weight;  ///< of those columns, summed
  int center, clip;
  float min_good;  ///< weight of a cell that counts
  float minimum;   ///< smallest weight of a searched block
};
struct TrialMoments {
  long long n, sum, squares;  ///< of x - center where |x - center| <= clip
};

/// What a trial is searched with.
struct TrialScreen {
  int searched;
  int low;    ///< value of unit 1; below is taken for it
  int shift;  ///< a unit is 2^shift; units end at 2047
  int mean;   ///< in units
  std::uint16_t limits[kScreenSlots];
};

/// A block of starts to be looked at (start: its number; width 0), then its hit.
struct DeviceHit {
  std::int64_t start;
  std::int32_t width, trial;
  float snr;
  std::int32_t octave;
};
struct HitList {
  DeviceHit* hits;
  unsigned* n;  ///< may exceed `capacity`: the rest was not written
  unsigned capacity;
};

// Rows that are read once (cuda/detect_rows.cuh).
inline constexpr int kRowAhead = 4;  ///< cells that windows reach into
inline constexpr int kRowThreads = 448;
inline constexpr int kMaxHalf = 440;  ///< two such rows fit a multiprocessor
inline constexpr int kRowTop = 3276;  ///< 20 of it fit 16 bits
inline constexpr int kRowHalvings = 3;
/// Of each cell: largest sum; windows of 2 pairs, 2 .. 5 fours, then 4 and 5 eights, and the same
/// of 16, 32, 64 columns.
inline constexpr int kRowFull = 8;
inline constexpr int kRowWindows = kRowFull + 2 * kRowHalvings;

/// Thread t takes the cells t and t + half.
struct RowWork {
  DeviceInput in;
  std::int64_t first;  ///< column of cell 0
  int half, n_tiles;   ///< tiles of 32 threads
  int n_columns;       ///< from `first` on, as the next two
  int stat_begin, stat_end;
  TrialStart* starts;
  TrialMoments* moments;
  unsigned* n_listed;  ///< set to 0
  unsigned* maxima;    ///< [trial][tile][window][thread]: of both cells
};

RowWork row_work(const DeviceInput& in);
/// Shared memory of a thread block that reads such a row.
inline std::int64_t row_bytes(const RowWork& w) {
  return 128 * (2 * std::int64_t{w.half} + kRowAhead);
}
/// Whether rows as long as this, and boxcars, are such that they are read once. A device may have
/// less shared memory than that takes (max_row_bytes()).
bool fits_rows(const RowWork& w, const BoxcarTable& table);
/// And whether they lie so.
bool takes_rows_once(const DeviceInput& in, const BoxcarTable& table);

}  // namespace ryle::search::detail
