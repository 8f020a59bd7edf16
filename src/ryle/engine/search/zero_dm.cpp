// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/zero_dm.hpp"

#include <cmath>
#include <cstdio>
#include <string>

#include "ryle/core/error.hpp"

namespace ryle::search {

ZeroDm zero_dm_of(std::string_view name) {
  if (name == "off" || name.empty()) return ZeroDm::off;
  if (name == "mean") return ZeroDm::mean;
  if (name == "weighted") return ZeroDm::weighted;
  throw ConfigError("zero-DM filter \"" + std::string(name) + "\": off, mean or weighted");
}

void check_zero_dm(const Band& band, double dm_min, std::int64_t max_width) {
  const double sweep = dm_min * band.sweep_samples_per_dm();
  const auto needed = 4 * static_cast<double>(max_width);
  if (sweep >= needed) return;
  char text[256];
  std::snprintf(
      text, sizeof text,
      "zero-DM filter: a pulse of the lowest DM (%.4g pc/cm3) sweeps the band in %.4g "
      "samples, less than 4 boxcars of %lld: the filter would take it out; a lowest DM of "
      "%.4g, or a widest boxcar of %.4g s, would do",
      dm_min, sweep, static_cast<long long>(max_width),
      std::ceil(100 * needed / band.sweep_samples_per_dm()) / 100,
      sweep / 4 * band.sample_interval_s);
  throw ConfigError(text);
}

}  // namespace ryle::search
