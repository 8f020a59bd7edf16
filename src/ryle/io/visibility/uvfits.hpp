// SPDX-License-Identifier: BSD-3-Clause
// Constants of our UVFITS files, shared by writer and reader. Private to io/.
#pragma once
#include <cstdint>

namespace ryle::io::uvfits {

/// Random parameters, in this order.
inline constexpr int kU = 0, kV = 1, kW = 2, kDate = 3, kDateRest = 4, kBaseline = 5, kAntenna1 = 6,
                     kAntenna2 = 7, kSubarray = 8, kInterval = 9, kParameters = 10;

/// Baseline code of 1-based antennas; the larger form beyond 255 (AIPS memo 117 and its extension).
inline double baseline_code(std::int64_t antenna1, std::int64_t antenna2, std::int64_t n_antennas) {
  return static_cast<double>(n_antennas <= 255 ? 256 * antenna1 + antenna2
                                               : 2048 * antenna1 + antenna2 + 65536);
}

}  // namespace ryle::io::uvfits
