// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>

/// How many samples a search on a device takes at a time.
namespace ryle::pipeline {

inline constexpr std::int64_t kHostBlock = 4096;  ///< of the CPU, which sums no column twice
inline constexpr std::int64_t kBlockStep = 1024;

struct BlockWish {
  std::int64_t again_samples = 0;  ///< summed for every block anew: sweep and widest boxcar
  double sample_interval_s = 0;
  double longest_s = 1;           ///< of a block: candidates wait for its end
  std::int64_t memory_bytes = 0;  ///< that the block may fill; 0 = not known
};

/// Three times what is summed anew and 8192 samples at least, less where such a block takes longer
/// or does not fit: a multiple of 1024, 1024 where nothing fits.
/// @param bytes_of of a block of so many samples; grows with it
std::int64_t choose_block(const BlockWish& wish,
                          const std::function<std::int64_t(std::int64_t)>& bytes_of);

/// Device memory to plan with: what is free, less what contexts and tables of engines take.
std::int64_t plannable_bytes(std::int64_t free_bytes);

}  // namespace ryle::pipeline
