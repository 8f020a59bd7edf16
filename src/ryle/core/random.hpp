// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>

namespace ryle {

/// Mixes 64 bits (finaliser of SplitMix64): a counter-based generator, value = f(key), the same on
/// every back-end.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Chains keys: combine(seed, stream, tick) differs for every argument order.
constexpr std::uint64_t combine(std::uint64_t a, std::uint64_t b) { return mix64(mix64(a) ^ b); }
constexpr std::uint64_t combine(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return combine(combine(a, b), c);
}

/// Uniform in (0, 1), 53 bits.
constexpr double uniform(std::uint64_t key) {
  return (static_cast<double>(mix64(key) >> 11) + 0.5) * 0x1p-53;
}

/// Standard normal value of a key (Box-Muller; keys k and k^1 share a pair).
inline double gaussian(std::uint64_t key) {
  const double radius = std::sqrt(-2.0 * std::log(uniform(key | 1u)));
  const double angle_rad = 2.0 * std::numbers::pi * uniform((key | 1u) + 0x5851f42d4c957f2du);
  return (key & 1u) ? radius * std::sin(angle_rad) : radius * std::cos(angle_rad);
}

}  // namespace ryle
