// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>

/// What one instruction set implements. One file each; plan.cpp chooses at run time.
namespace ryle::search::detail {

/// Samples the kernels work in; rows of accumulators are multiples of it.
inline constexpr std::int64_t kChunk = 256;

/// One accumulation: adds n_groups rows of bytes into 16-bit accumulators of up to any number of
/// trials. Row of (group, trial) = base + starts[group * n_trials + trial].
struct Accumulation {
  const std::uint8_t* base;
  const std::uint32_t* starts;  // [group][trial]
  std::int64_t n_groups;
  std::int64_t n_trials;
  std::int64_t n;       // samples, multiple of kChunk
  std::uint16_t* sums;  // [trial][sum_stride], order within a chunk is the kernel's own
  std::int64_t sum_stride;
  bool first;  // overwrite instead of add
  /// Where complete sums go in the order of time, [trial][to_stride]; or nullptr. Asked of the
  /// last accumulation; not every kernel does it.
  std::uint16_t* to;
  std::int64_t to_stride;
};

/// The widths searched at full resolution, and from kFirstHalved on those of every halved level.
inline constexpr std::int32_t kBoxcarWidths[16] = {1,  2,  3,  4,  5,  6,  7,  8,
                                                   10, 11, 13, 16, 19, 23, 27, 32};
inline constexpr int kFullOctaves = 6;   // {1} {2 3} {4..7} {8..13} {16..27} {32}
inline constexpr int kFirstHalved = 12;  // index of width 19
inline constexpr std::int64_t kStartsPerSegment = 512;
/// Bytes behind the cells of a row that may be read: zeros.
inline constexpr std::int64_t kCellPad = 256;

/// Which blocks of 64 starts may hold a boxcar above its limit, from cells of 1 (narrow), 2
/// (pairs) or 4 (quads) starts. Sums saturate at 255, so a limit is never missed; a sum of cells
/// that begins in the first cell of a block also speaks for the starts before it (boxcars inside
/// whose first cell they cut).
struct CellScreen {
  const std::uint8_t* cells;
  std::int64_t n_blocks;
  const std::uint8_t* below;  // narrow: [width]; else [segment of starts][8]: a sum above is a hit
  std::uint8_t* hits;         // [octave][stride], 1 is written where there is a hit
  std::int64_t stride;
};

/// Rows of one node of the tree: to[to_at + t] = sum over children k of child_k[offset + t], t < n
/// + extra. Lengths and places in elements.
struct TreeRow {
  std::int32_t to_at, extra;
};
struct TreeMerge {
  const void* const* children;
  std::int64_t n_children;      // <= kMaxChildren
  const std::int32_t* offsets;  // [row][child]
  const TreeRow* rows;
  std::int64_t n_rows;
  std::int64_t n;
  void* to;
};
inline constexpr std::int64_t kMaxChildren = 16;
using MergeFunction = void (*)(const TreeMerge&);

struct CpuKernel {
  const char* name;  // "search/cpu/avx512"
  /// to[t] = sum of n_rows (2 or 4) rows, n a multiple of 64; sums fit a byte.
  void (*sum_rows)(const std::uint8_t* const* rows, int n_rows, std::uint8_t* to, std::int64_t n);
  /// Returns whether it has stored to work.to.
  bool (*accumulate)(const Accumulation& work);
  /// Accumulators back to the order of time. store_u32 adds unless `first`.
  void (*store_u16)(const std::uint16_t* sums, std::uint16_t* to, std::int64_t n);
  void (*store_u32)(const std::uint16_t* sums, std::uint32_t* to, std::int64_t n, bool first);
  /// to[t] = ceil(max(x[t] - base, 0) / 2^shift), at most 65,535.
  void (*above_u16)(const std::uint16_t* x, std::int64_t n, std::uint32_t base, int shift,
                    std::uint16_t* to);
  void (*above_u32)(const std::uint32_t* x, std::int64_t n, std::uint32_t base, int shift,
                    std::uint16_t* to);
  /// to[t] = max(ceil((x[2 t] + x[2 t + 1]) / 2) - less, 0), t < n.
  void (*halve)(const std::uint16_t* x, std::int64_t n, std::uint16_t less, std::uint16_t* to);
  /// to[t] = floor(x[t] scale / 2^16) + 1, at most 255.
  void (*cells)(const std::uint16_t* x, std::int64_t n, std::uint16_t scale, std::uint8_t* to);
  /// Largest cell of every kStartsPerSegment.
  void (*maxima)(const std::uint8_t* x, std::int64_t n, std::uint8_t* to);
  /// These return the octaves with hits, one bit each; hits of others are not touched.
  unsigned (*screen_narrow)(const CellScreen& screen);  // widths 1 .. 7: 3 octaves
  unsigned (*screen_pairs)(const CellScreen& screen);   // 3 4 5 6 | 7 8 cells: 2 octaves
  unsigned (*screen_quads)(const CellScreen& screen);   // 4 5 6 | 7 8 cells: 2 octaves
  /// Adds count, sum and squares of x - center within +-clip to moments[0..2].
  void (*moments_u16)(const std::uint16_t* x, std::int64_t n, std::int64_t center,
                      std::int64_t clip, std::int64_t* moments);
  void (*moments_u32)(const std::uint32_t* x, std::int64_t n, std::int64_t center,
                      std::int64_t clip, std::int64_t* moments);
  /// to[t] = sum of x[u] - center, u < t; n + 1 values, modulo 2^32.
  void (*prefix_u16)(const std::uint16_t* x, std::int64_t n, std::int32_t center, std::int32_t* to);
  void (*prefix_u32)(const std::uint32_t* x, std::int64_t n, std::int32_t center, std::int32_t* to);
  /// The value with `rank` smaller ones before it.
  std::uint32_t (*ranked)(const std::uint32_t* x, std::int64_t n, std::int64_t rank);
  /// Nodes of the tree: bytes (quads: four of them fit a byte) to 16 bits, 16 to 16, 16 to 32, 32
  /// to
  /// 32. Lengths are exact; the first two may read a vector beyond.
  MergeFunction merge_bytes, merge_byte_quads, merge_u16, merge_u16_u32, merge_u32;
};

const CpuKernel* cpu_kernel_generic();
const CpuKernel* cpu_kernel_avx2();  // nullptr when not built
const CpuKernel* cpu_kernel_avx512();

/// "auto", "cpu" or a name; throws UnsupportedError.
const CpuKernel& cpu_kernel_named(const std::string& wanted);

}  // namespace ryle::search::detail
