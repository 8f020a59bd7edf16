// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

namespace ryle::wire {

/// Extends a counter of `bits` bits to 64: the value congruent to `raw` mod 2^bits that is nearest
/// to `reference`.
/// @eq t = reference + sign_extend((raw - reference) mod 2^bits)   (ingest.md 6)
/// @pre 1 <= bits <= 64; the true distance to `reference` is below 2^(bits-1). Exactly half a turn
/// counts as the past. The reference is a window head, never the last packet: that one may be
/// forged.
constexpr std::int64_t extend(std::uint64_t raw, int bits, std::int64_t reference) noexcept {
  // All in unsigned: wrap-around is what is meant, and defined.
  const auto ref = static_cast<std::uint64_t>(reference);
  std::uint64_t difference = raw - ref;
  if (bits < 64) {
    const std::uint64_t half = std::uint64_t{1} << (bits - 1);
    difference &= (half << 1) - 1;
    difference = (difference ^ half) - half;
  }
  return static_cast<std::int64_t>(ref + difference);
}

}  // namespace ryle::wire
