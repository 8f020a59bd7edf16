// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <numeric>

namespace ryle {

/// Sample counter; absolute time is never a float.
using Tick = std::int64_t;

/// Exact ratio, e.g. a rate of 78125/4 Hz.
struct Rational {
  std::int64_t num = 0;
  std::int64_t den = 1;
  constexpr double value() const { return static_cast<double>(num) / static_cast<double>(den); }
  constexpr Rational reduced() const {
    const auto g = std::gcd(num, den);
    return g == 0 ? *this : Rational{num / g, den / g};
  }
  friend constexpr bool operator==(const Rational&, const Rational&) = default;
};

/// Sample n is the value at the instant epoch + n / rate.
/// @unit epoch_tai_ns: nanoseconds since 1970-01-01T00:00:00 TAI; rate_hz: Hz
struct SampleClock {
  std::int64_t epoch_tai_ns = 0;
  Rational rate_hz{1, 1};

  /// floor(epoch + n * 1e9 * den / num), exact in 128-bit integers.
  constexpr std::int64_t tai_ns(Tick n) const {
    const __int128 scaled = static_cast<__int128>(n) * rate_hz.den * 1'000'000'000;
    __int128 quotient = scaled / rate_hz.num;
    if (scaled % rate_hz.num != 0 && (scaled < 0) != (rate_hz.num < 0)) --quotient;
    return epoch_tai_ns + static_cast<std::int64_t>(quotient);
  }
  /// A difference of ticks in seconds (never use on an absolute time).
  constexpr double seconds(Tick difference) const {
    return static_cast<double>(difference) * static_cast<double>(rate_hz.den) /
           static_cast<double>(rate_hz.num);
  }
};

/// What a recorded time rests on; "arrival" makes products say UNSYNCHRONISED.
enum class TimeSource : std::uint8_t { packet, header, configured, arrival };

}  // namespace ryle
