// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <utility>

namespace ryle {

/// Pairs i <= j, autos included, index j(j+1)/2 + i (conventions.md 5). Used for input pairs and
/// for antenna pairs.
constexpr std::int64_t n_pairs(std::int64_t n) { return n * (n + 1) / 2; }
constexpr std::int64_t pair_index(std::int64_t i, std::int64_t j) { return j * (j + 1) / 2 + i; }
/// Inverse of pair_index: {i, j}, by integer root.
constexpr std::pair<std::int64_t, std::int64_t> pair_of(std::int64_t index) {
  std::int64_t j = 0;
  for (std::int64_t bit = std::int64_t{1} << 31; bit != 0; bit >>= 1) {
    const std::int64_t trial = j + bit;
    if (trial <= 3'000'000'000 && n_pairs(trial) <= index) j = trial;
  }
  return {index - n_pairs(j), j};
}

}  // namespace ryle
