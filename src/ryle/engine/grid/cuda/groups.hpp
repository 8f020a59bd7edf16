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
inline constexpr int kMaxGroup = 12;
constexpr int group_width(int n) {
  for (const int width : kGroupWidths)
    if (n <= width) return width;
  return 0;
}

/// Weights are found anew for every group, which asks for few of them; the last one has nothing to
/// hide behind, so that groups are as alike as they can be.
inline std::vector<ChannelGroup> channel_groups(std::int64_t first, std::int64_t n, int maximum) {
  std::vector<ChannelGroup> groups;
  if (n < 1) return groups;
  const std::int64_t n_groups = (n + maximum - 1) / maximum;
  const auto step = static_cast<int>((n + n_groups - 1) / n_groups);
  for (std::int64_t c = 0; c < n; c += step)
    groups.push_back({first + c, static_cast<int>(n - c < step ? n - c : step)});
  return groups;
}

}  // namespace ryle::grid::detail
