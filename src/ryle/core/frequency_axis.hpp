// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

namespace ryle {

/// Channel centres in ascending sky frequency, upper-sideband phase (conventions.md 3).
/// @unit first_center_hz, channel_width_hz: Hz
struct FrequencyAxis {
  double first_center_hz = 0;
  double channel_width_hz = 0;
  std::int64_t n_channels = 0;

  double center_hz(std::int64_t channel) const {
    return first_center_hz + static_cast<double>(channel) * channel_width_hz;
  }
  double band_center_hz() const {
    return first_center_hz + 0.5 * static_cast<double>(n_channels - 1) * channel_width_hz;
  }
};

}  // namespace ryle
