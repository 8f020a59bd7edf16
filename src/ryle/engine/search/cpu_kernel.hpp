// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>

/// What one instruction set implements. One file each; plan.cpp chooses at run time.
namespace ryle::search::detail {

/// Samples the kernels work in; rows of accumulators are multiples of it.
inline constexpr std::int64_t kChunk = 128;

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
};

/// The widths searched at full resolution, and those of every halved level.
inline constexpr std::int32_t kBoxcarWidths[16] = {1,  2,  3,  4,  5,  6,  7,  8,
                                                   10, 11, 13, 16, 19, 23, 27, 32};
inline constexpr int kFullOctaves = 6;    // {1} {2 3} {4..7} {8..13} {16..27} {32}
inline constexpr int kHalvedOctaves = 2;  // {19 23 27} {32}
inline constexpr int kFirstHalved = 12;   // index of width 19
inline constexpr std::int64_t kBoxcarPad = 128;

/// Which blocks of 64 starts hold a boxcar above its limit. Sums saturate at 65,535, so a limit is
/// never missed.
struct BoxcarScreen {
  const std::uint16_t* values;  // readable to 64 n_blocks + kBoxcarPad
  std::int64_t n_blocks;
  const std::uint16_t* below;  // [width index]: a sum above this is a hit
  std::uint8_t* hits;          // [octave][stride]: 1 = a hit among the 64 starts
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
  void (*accumulate)(const Accumulation& work);
  /// Accumulators back to the order of time. store_u32 adds unless `first`.
  void (*store_u16)(const std::uint16_t* sums, std::uint16_t* to, std::int64_t n);
  void (*store_u32)(const std::uint16_t* sums, std::uint32_t* to, std::int64_t n, bool first);
  /// to[t] = ceil(max(x[t] - base, 0) / 2^shift), at most 65,535.
  void (*above_u16)(const std::uint16_t* x, std::int64_t n, std::uint32_t base, int shift,
                    std::uint16_t* to);
  void (*above_u32)(const std::uint32_t* x, std::int64_t n, std::uint32_t base, int shift,
                    std::uint16_t* to);
  /// to[t] = ceil((x[2 t] + x[2 t + 1]) / 2), t < n.
  void (*halve)(const std::uint16_t* x, std::int64_t n, std::uint16_t* to);
  void (*screen_full)(const BoxcarScreen& screen);
  void (*screen_halved)(const BoxcarScreen& screen);
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
