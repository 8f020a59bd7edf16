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

struct CpuKernel {
  const char* name;  // "search/cpu/avx512"
  /// to[t] = sum of n_rows (1, 2 or 4) rows, n a multiple of 64; sums fit a byte.
  void (*sum_rows)(const std::uint8_t* const* rows, int n_rows, std::uint8_t* to, std::int64_t n);
  void (*accumulate)(const Accumulation& work);
  /// Accumulators back to the order of time. store_u32 adds unless `first`.
  void (*store_u16)(const std::uint16_t* sums, std::uint16_t* to, std::int64_t n);
  void (*store_u32)(const std::uint16_t* sums, std::uint32_t* to, std::int64_t n, bool first);
  /// to[block] = largest prefix[t + width] - prefix[t], t in the 64 starts of a block.
  void (*block_maxima)(const std::int32_t* prefix, std::int64_t width, std::int64_t n_blocks,
                       std::int32_t* to);
  /// Adds count, sum and squares of x - center within +-clip to moments[0..2].
  void (*moments_u16)(const std::uint16_t* x, std::int64_t n, std::int64_t center,
                      std::int64_t clip, std::int64_t* moments);
  void (*moments_u32)(const std::uint32_t* x, std::int64_t n, std::int64_t center,
                      std::int64_t clip, std::int64_t* moments);
  /// to[t] = sum of x[u] - center, u < t; n + 1 values, modulo 2^32.
  void (*prefix_u16)(const std::uint16_t* x, std::int64_t n, std::int32_t center, std::int32_t* to);
  void (*prefix_u32)(const std::uint32_t* x, std::int64_t n, std::int32_t center, std::int32_t* to);
};

const CpuKernel* cpu_kernel_generic();
const CpuKernel* cpu_kernel_avx2();  // nullptr when not built
const CpuKernel* cpu_kernel_avx512();

/// "auto", "cpu" or a name; throws UnsupportedError.
const CpuKernel& cpu_kernel_named(const std::string& wanted);

}  // namespace ryle::search::detail
