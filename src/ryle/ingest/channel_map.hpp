// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ryle {

/// Where a channel of a frame format lies on the sky: formats as VDIF number their channels and say
/// no more.
struct ChannelMapEntry {
  std::string station;        ///< empty = any
  std::int64_t thread = -1;   ///< -1 = any
  std::int64_t channel = -1;  ///< -1 = the only one of its thread
  double zero_hz = 0;         ///< sky frequency of baseband 0: band edge (real), centre (complex)
  bool lower = false;         ///< sky frequency falls as the baseband frequency rises
  std::string text;           ///< as it was given
};

/// Entries "[STATION:]THREAD[/CHANNEL] MHZ [U|L]"; THREAD may be *. Throws ConfigError for anything
/// else.
std::vector<ChannelMapEntry> parse_channel_map(const std::vector<std::string>& entries);

/// The two letters of a VDIF or CODIF station id, the first in the high byte; "" when it is a
/// number.
std::string station_letters(std::uint32_t station);

/// The first entry of the map for a channel of `n_channels`; null = none. A station is known by its
/// letters or its number. Throws ConfigError when that entry names no channel but the thread has
/// several.
const ChannelMapEntry* find_channel(const std::vector<ChannelMapEntry>& map,
                                    std::string_view letters, std::int64_t station,
                                    std::int64_t thread, std::int64_t channel,
                                    std::int64_t n_channels);

}  // namespace ryle
