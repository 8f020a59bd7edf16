// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_block_size.hpp"

#include <algorithm>
#include <cmath>

namespace ryle::pipeline {

std::int64_t choose_block(const BlockWish& wish,
                          const std::function<std::int64_t(std::int64_t)>& bytes_of) {
  constexpr std::int64_t kUsual = 8192, kMax = 1 << 20;
  const std::int64_t wanted = std::clamp(3 * wish.again_samples, kUsual, kMax);
  const double longest = std::floor(wish.longest_s / wish.sample_interval_s / kBlockStep);
  std::int64_t fits = (wanted + kBlockStep - 1) / kBlockStep;  // steps
  if (longest < static_cast<double>(fits))
    fits = std::max<std::int64_t>(1, static_cast<std::int64_t>(longest));
  const bool known = wish.memory_bytes > 0;
  if (!known || bytes_of(fits * kBlockStep) <= wish.memory_bytes) return fits * kBlockStep;
  std::int64_t low = 1;  // taken to fit: whoever allocates says what does not
  while (fits - low > 1) {
    const std::int64_t middle = (low + fits) / 2;
    (bytes_of(middle * kBlockStep) <= wish.memory_bytes ? low : fits) = middle;
  }
  return low * kBlockStep;
}

std::int64_t plannable_bytes(std::int64_t free_bytes) {
  constexpr std::int64_t kTables = std::int64_t{1} << 29;
  return std::max<std::int64_t>(1, free_bytes - free_bytes / 32 - kTables);
}

}  // namespace ryle::pipeline
