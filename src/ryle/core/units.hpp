// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <numbers>

namespace ryle {

inline constexpr double kSpeedOfLight_m_per_s = 299'792'458.0;
inline constexpr double kPi = std::numbers::pi;
inline constexpr double kDegree_rad = std::numbers::pi / 180.0;

}  // namespace ryle
