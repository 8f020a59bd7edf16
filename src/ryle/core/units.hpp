// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <limits>
#include <numbers>

namespace ryle {

inline constexpr double kSpeedOfLight_m_per_s = 299'792'458.0;
inline constexpr double kPi = std::numbers::pi;
inline constexpr double kDegree_rad = std::numbers::pi / 180.0;
inline constexpr std::int64_t kDay_s = 86'400;
inline constexpr std::int64_t kUnixEpoch_mjd = 40'587;
inline constexpr double kMjdZero_jd = 2'400'000.5;
inline constexpr std::int64_t kSecond_ns = 1'000'000'000;
/// No value: no data, not observed. A float, so that it goes anywhere.
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

}  // namespace ryle
