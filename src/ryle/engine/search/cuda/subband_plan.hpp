// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "ryle/engine/search/subband_plan.hpp"

/// Private to sub-bands on the device: the plan as its kernels take it. Pointers of the work are
/// device memory.
namespace ryle::search::detail {

inline constexpr int kSubbandThreads = 128;
inline constexpr int kSubbandWords = 4;  ///< of 16-bit sums that a thread makes, a block apart
inline constexpr int kSubbandTile = 2 * kSubbandWords * kSubbandThreads;  ///< outputs of a block
inline constexpr int kSubbandTrials = 8;                                  ///< of a block

inline constexpr std::int64_t kSubbandOutputs = 16384;  ///< at a time: bounds the rows' memory

/// A row of the first stage: a sub-band along the delays of a group of trials.
struct SubbandRow {
  std::int32_t first_channel, n_channels;
  std::int32_t relative_at;  ///< of its delays in SubbandWork::relative
  std::int32_t low;          ///< smallest start of its trials
  std::int32_t extra;        ///< and how far the largest lies behind it
};
/// What a trial takes of a sub-band.
struct SubbandTerm {
  std::int32_t row, start;  ///< start: behind the row's `low`
};

struct SubbandWork {
  const std::uint8_t* codes;
  std::int64_t code_stride, n_outputs;
  const SubbandRow* rows;
  const std::int32_t* relative;
  int n_rows;
  int byte_channels;          ///< codes whose sum fits a byte
  std::uint16_t* scratch;     ///< [row][stride]
  std::int64_t stride;        ///< even; whole tiles of outputs, `extra` and a word
  const SubbandTerm* places;  ///< [trial][sub-band]
  int n_subbands, n_trials;
  void* sums;
  std::int64_t sum_stride;
};

struct SubbandTables {
  std::vector<SubbandRow> rows;
  std::vector<std::int32_t> relative;
  std::vector<SubbandTerm> places;  ///< [trial][sub-band]
  std::int64_t max_extra = 0;
};

inline SubbandTables subband_tables(const SubbandPlan& plan, std::int64_t n_trials) {
  SubbandTables t;
  const std::size_t n_subbands = plan.subbands.size();
  t.places.resize(static_cast<std::size_t>(n_trials) * n_subbands);
  for (std::size_t b = 0; b < n_subbands; ++b) {
    const Subband& s = plan.subbands[b];
    const std::size_t first_row = t.rows.size();
    for (std::int64_t g = 0; g < s.n_groups(); ++g)
      t.rows.push_back({static_cast<std::int32_t>(s.first_channel),
                        static_cast<std::int32_t>(s.n_channels),
                        static_cast<std::int32_t>(static_cast<std::int64_t>(t.relative.size()) +
                                                  g * s.n_channels),
                        INT32_MAX, 0});
    t.relative.insert(t.relative.end(), s.relative.begin(), s.relative.end());
    for (std::size_t i = 0; i < s.start.size(); ++i) {
      SubbandRow& row = t.rows[first_row + static_cast<std::size_t>(s.group[i])];
      row.low = std::min(row.low, s.start[i]);
    }
    for (std::size_t i = 0; i < s.start.size(); ++i) {
      const std::size_t at = first_row + static_cast<std::size_t>(s.group[i]);
      SubbandRow& row = t.rows[at];
      row.extra = std::max(row.extra, s.start[i] - row.low);
      t.max_extra = std::max<std::int64_t>(t.max_extra, row.extra);
      t.places[i * n_subbands + b] = {static_cast<std::int32_t>(at), s.start[i] - row.low};
    }
  }
  return t;
}

/// Sums of a row of scratch, for `n_outputs` at a time.
inline std::int64_t subband_stride(std::int64_t n_outputs, std::int64_t max_extra) {
  const std::int64_t tiles = (n_outputs + kSubbandTile - 1) / kSubbandTile;
  return tiles * kSubbandTile + (max_extra + 7) / 8 * 8 + 8;
}

}  // namespace ryle::search::detail
