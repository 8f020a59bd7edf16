// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string_view>

#include "ryle/engine/search/dispersion.hpp"

/// Zero-DM filter (Eatough, Keane & Lyne 2009): what all channels do at once is taken out of each.
namespace ryle::search {

enum class ZeroDm : std::uint8_t {
  off,
  mean,     ///< the mean of the unmasked channels, in units of each one's rms
  weighted  ///< times the response of the channel, <u_c m> / <m m> over the block
};

/// "off", "mean" or "weighted". Throws ConfigError.
ZeroDm zero_dm_of(std::string_view name);

/// The filter takes about W / sweep of a pulse: refuses when a pulse of dm_min sweeps the band in
/// less than 4 boxcars of max_width. Throws ConfigError saying what would do.
void check_zero_dm(const Band& band, double dm_min, std::int64_t max_width);

}  // namespace ryle::search
