// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>

/// Half precision for tests: finite values, from and to their bits.
namespace ryle::test {

inline float of_half(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31u;
  const std::uint32_t fraction = bits & 1023u;
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  return std::ldexp(static_cast<float>(fraction), -24) * (sign != 0 ? -1.0f : 1.0f);
}

/// Exact for |value| < 2048.
inline std::uint16_t to_half(int value) {
  if (value == 0) return 0;
  const int exponent = std::ilogb(value), magnitude = std::abs(value);
  return static_cast<std::uint16_t>((value < 0 ? 0x8000 : 0) | (exponent + 15) << 10 |
                                    (magnitude << 10 >> exponent & 1023));
}

}  // namespace ryle::test
