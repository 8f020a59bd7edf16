// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/core/random.hpp"

/// Triangular dither of requantised voltages: a pure function of (seed, row, channel, pol, tick).
/// @eq u = (d1 + d2 + 1) / 65536 with d1, d2 uniform signed 16-bit numbers: triangular on (-1, 1)
/// LSB, mean exactly 0
namespace ryle::beamform {

constexpr std::uint64_t dither_key(std::uint64_t seed, std::int64_t row, std::int64_t channel,
                                   std::int64_t pol) {
  return combine(seed, static_cast<std::uint64_t>(row),
                 static_cast<std::uint64_t>(2 * channel + pol));
}
/// Offset of one part in LSB; part 0 = real.
constexpr double dither(std::uint64_t key, std::int64_t tick, int part) {
  const std::uint64_t bits = combine(key, static_cast<std::uint64_t>(tick)) >> (32 * part);
  const auto first = static_cast<std::int16_t>(bits);
  const auto second = static_cast<std::int16_t>(bits >> 16);
  return (first + second + 1) * 0x1p-16;
}

}  // namespace ryle::beamform
