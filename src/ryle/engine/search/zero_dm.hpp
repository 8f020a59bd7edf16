// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "ryle/engine/search/dispersion.hpp"

/// Zero-DM filter (Eatough, Keane & Lyne 2009): what all channels do at once is taken out of each.
namespace ryle::search {

enum class ZeroDm : std::uint8_t {
  off,
  mean,     ///< the mean of the unmasked channels, in units of each one's rms
  weighted  ///< times the response of the channel, mean(u_c m) / mean(m m) over the block
};

/// "off", "mean" or "weighted". Throws ConfigError.
ZeroDm zero_dm_of(std::string_view name);

/// The filter takes about W / sweep of a pulse. DM at which that is a quarter of a pulse of `width`
/// samples. @unit pc/cm3
double zero_dm_floor(const Band& band, std::int64_t width);
/// Rejects when the filter would take more than that of pulses as wide of every DM of a plan.
/// Throws ConfigError saying what would do.
void check_zero_dm(const Band& band, double dm_max, std::int64_t width);
/// What a plan that begins at dm_min loses by the filter, in words; "" = less than a quarter.
std::string zero_dm_losses(const Band& band, double dm_min, std::int64_t max_width);

}  // namespace ryle::search
