// SPDX-License-Identifier: BSD-3-Clause
// Loops over one dedispersed series, compiled once per instruction set.
#pragma once
#include <algorithm>
#include <cstdint>

namespace ryle::search::detail {
namespace {

/// Adds n, sum, squares of x - center where |x - center| <= clip to moments[0..2].
template <class T>
void moments_of(const T* x, std::int64_t n, std::int64_t center, std::int64_t clip,
                std::int64_t* moments) {
  const auto middle = static_cast<std::int32_t>(center);
  const auto limit = static_cast<std::int32_t>(std::min<std::int64_t>(clip, 1 << 30));
  // 64 values of |x - center| < 2^13 keep their squares in 32 bits; wider clips go the long way.
  const bool narrow = limit < (1 << 12);
  for (std::int64_t first = 0; first < n; first += 64) {
    const auto end = static_cast<int>(std::min<std::int64_t>(64, n - first));
    const T* block = x + first;
    if (narrow) {
      std::int32_t count = 0, sum = 0, squares = 0;
      for (int t = 0; t < end; ++t) {
        const std::int32_t d = static_cast<std::int32_t>(block[t]) - middle;
        const std::int32_t keep = (d <= limit && d >= -limit) ? -1 : 0;
        const std::int32_t v = d & keep;
        count -= keep;
        sum += v;
        squares += v * v;
      }
      moments[0] += count;
      moments[1] += sum;
      moments[2] += squares;
      continue;
    }
    for (int t = 0; t < end; ++t) {
      const std::int64_t d = static_cast<std::int64_t>(block[t]) - center;
      if (d > clip || d < -clip) continue;
      ++moments[0];
      moments[1] += d;
      moments[2] += d * d;
    }
  }
}

/// to[t] = sum of x[u] - center for u < t; n + 1 values.
template <class T>
void prefix_of(const T* x, std::int64_t n, std::int32_t center, std::int32_t* to) {
  std::uint32_t sum = 0;  // differences of wrapped sums are right
  for (std::int64_t t = 0; t < n; ++t) {
    to[t] = static_cast<std::int32_t>(sum);
    sum += static_cast<std::uint32_t>(x[t]) - static_cast<std::uint32_t>(center);
  }
  to[n] = static_cast<std::int32_t>(sum);
}

}  // namespace
}  // namespace ryle::search::detail
