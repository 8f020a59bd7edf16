// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#ifdef __CUDACC__
#define RYLE_HOST_DEVICE __host__ __device__
#else
#define RYLE_HOST_DEVICE
#endif

/// Keyed dither of the requantiser: a pure function of (seed, input, channel, spectrum, part), in
/// integers only, so that every back-end, gulp size and thread count gets the same codes from the
/// same float.
/// @eq q = sat(rne(y + u)), u = (d + 1/2) / 65536, d the signed 16-bit half of dither_bits() that
/// belongs to the part (real: high half, imaginary: low half); u is uniform on (-1/2, 1/2), its
/// mean exactly 0   (correlate.md 3.5)
namespace ryle::channelize {

/// One bijection of 32-bit words (xor-shift and odd multipliers; constants of a published low-bias
/// search by C. Wellons).
RYLE_HOST_DEVICE constexpr std::uint32_t dither_mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  x ^= x >> 16;
  return x;
}

/// Once per channel.
RYLE_HOST_DEVICE constexpr std::uint32_t dither_channel_key(std::uint64_t seed,
                                                            std::int64_t channel) {
  const auto low = static_cast<std::uint32_t>(seed);
  const auto high = static_cast<std::uint32_t>(seed >> 32);
  return dither_mix(dither_mix(dither_mix(low) ^ high) + static_cast<std::uint32_t>(channel));
}
/// Once per input. A bijection: two inputs never share the dither of one (channel, spectrum).
RYLE_HOST_DEVICE constexpr std::uint32_t dither_input_key(std::int64_t input) {
  return dither_mix(static_cast<std::uint32_t>(input) * 2u + 0x9e3779b9u);
}
/// Once per spectrum.
RYLE_HOST_DEVICE constexpr std::uint32_t dither_spectrum_key(std::int64_t spectrum) {
  const auto word = static_cast<std::uint64_t>(spectrum);
  return dither_mix(dither_mix(static_cast<std::uint32_t>(word >> 32) + 0x85ebca6bu) ^
                    static_cast<std::uint32_t>(word));
}
/// 32 bits per sample: high half for the real part, low half for the imaginary part.
RYLE_HOST_DEVICE constexpr std::uint32_t dither_bits(std::uint32_t channel_key,
                                                     std::uint32_t input_key,
                                                     std::uint32_t spectrum_key) {
  return dither_mix(channel_key ^ input_key ^ spectrum_key);
}
/// Offset in LSB, exact in float: the low 16 bits are replaced by one half of the step.
RYLE_HOST_DEVICE constexpr float dither_re(std::uint32_t bits) {
  return static_cast<float>(static_cast<std::int32_t>((bits & 0xffff0000u) | 0x8000u)) * 0x1p-32f;
}
RYLE_HOST_DEVICE constexpr float dither_im(std::uint32_t bits) {
  return static_cast<float>(static_cast<std::int32_t>((bits << 16) | 0x8000u)) * 0x1p-32f;
}

}  // namespace ryle::channelize
