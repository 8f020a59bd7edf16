// SPDX-License-Identifier: BSD-3-Clause
// Channels that are summed together on a device. Private to the engine.
#pragma once
#include <cstdint>
#include <vector>

namespace ryle::grid::detail {

struct ChannelGroup {
  std::int64_t first = 0;
  int n = 0;
};

/// What kernels are made for; a group takes the smallest that holds it.
inline constexpr int kGroupWidths[] = {1, 4, 8, 12};
inline constexpr int kMostGroup = 12;
constexpr int group_width(int n) {
  for (const int width : kGroupWidths)
    if (n <= width) return width;
  return 0;
}

/// Weights are found anew for every group, which asks for wide ones; results travel home while
/// later groups are gridded, which asks for several. Twelve are taken at once, more by eight.
inline std::vector<ChannelGroup> channel_groups(std::int64_t first, std::int64_t n, int most,
                                                int several = 8) {
  std::vector<ChannelGroup> groups;
  const int step = n <= most ? most : most > several ? several : most;
  for (std::int64_t c = 0; c < n; c += step)
    groups.push_back({first + c, static_cast<int>(n - c < step ? n - c : step)});
  return groups;
}

}  // namespace ryle::grid::detail
