// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "tests/engine/correlate/voltages.hpp"
#include "tests/support/half.hpp"

namespace ryle::correlate::test {

/// Integers within +-127, or halves of any size between 2^-9 and 2.
inline Voltages halves_of(std::int64_t n, std::int64_t c, std::int64_t t, bool integers) {
  Voltages v(SampleFormat::cf16, c, t, n, n % 2 == 1);
  for (std::int64_t k = 0; k < c * t * n; ++k) {
    const std::int64_t channel = k / (t * n), spectrum = k / n % t;
    auto* to =
        v.view.cell(channel, spectrum / 32, k % n) + spectrum % 32 / 16 * 64 + 2 * (spectrum % 16);
    const std::uint64_t random = mix64(static_cast<std::uint64_t>(k));
    for (int part = 0; part < 2; ++part, to += 32) {
      const auto bits = static_cast<std::uint16_t>(random >> 20 * part);
      const std::uint16_t half =
          integers
              ? ryle::test::to_half(bits % 255 - 127)
              : static_cast<std::uint16_t>((bits & 0x83ff) | (6 + (bits >> 10 & 31) % 10) << 10);
      std::memcpy(to, &half, 2);
    }
  }
  return v;
}

}  // namespace ryle::correlate::test
