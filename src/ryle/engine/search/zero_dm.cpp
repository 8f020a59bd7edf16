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

double zero_dm_floor(const Band& band, std::int64_t width) {
  return 4 * static_cast<double>(width) / band.sweep_samples_per_dm();
}

void check_zero_dm(const Band& band, double dm_max, std::int64_t width) {
  if (dm_max >= zero_dm_floor(band, width)) return;
  const double sweep = dm_max * band.sweep_samples_per_dm();
  char text[256];
  std::snprintf(text, sizeof text,
                "zero-DM filter: a pulse of the highest DM (%.4g pc/cm3) sweeps the band in %.4g "
                "samples, less than 4 boxcars of %lld: the filter would take all pulses out; a "
                "highest DM of %.4g, or a widest boxcar of %.4g s, would do",
                dm_max, sweep, static_cast<long long>(width),
                std::ceil(100 * zero_dm_floor(band, width)) / 100,
                sweep / 4 * band.sample_interval_s);
  throw ConfigError(text);
}

std::string zero_dm_losses(const Band& band, double dm_min, std::int64_t max_width) {
  const double floor = zero_dm_floor(band, max_width);
  if (dm_min >= floor) return "";
  char text[256];
  std::snprintf(text, sizeof text,
                "zero-DM filter: it takes about width / sweep of a pulse: of pulses as wide as the "
                "widest boxcar (%.4g s) a quarter at DM %.4g and all below %.4g, of those of 1 ms "
                "a quarter at DM %.4g",
                static_cast<double>(max_width) * band.sample_interval_s, floor, floor / 4,
                4e-3 / band.sample_interval_s / band.sweep_samples_per_dm());
  return text;
}

}  // namespace ryle::search
