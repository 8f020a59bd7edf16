// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <cstdint>

#include "ryle/device/tasks.hpp"

namespace ryle::search::detail {

/// Some outputs of an execute(), all trials: arguments as there, from output `first` on.
struct OutputWork {
  const std::uint8_t* codes;  // at the first output
  std::int64_t code_stride;
  std::int64_t first, n;
  void* sums;  // of output 0
  std::int64_t sum_stride;
};

/// Runs body(slot, tile, work) for every tile of trials and every `times` outputs of `whole`; tiles
/// of the same outputs follow one another, as they read the same codes.
template <class Body>
void for_each_tile(Queue& queue, std::int64_t n_tiles, std::int64_t times, const OutputWork& whole,
                   const Body& body) {
  const std::int64_t n_times = (whole.n + times - 1) / times;
  for_each_task(queue, n_times * n_tiles, [&](std::int64_t slot, std::int64_t task) {
    OutputWork work = whole;
    work.first = task / n_tiles * times;
    work.codes += work.first;
    work.n = std::min(times, whole.n - work.first);
    body(slot, static_cast<std::size_t>(task % n_tiles), work);
  });
}

}  // namespace ryle::search::detail
