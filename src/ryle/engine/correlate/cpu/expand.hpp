// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <cstring>

#include "ryle/engine/correlate/cpu/kernel.hpp"

/// Shared source of the per-instruction-set files (see cpu/tile.hpp): planar blocks of other
/// formats -> kernel cells.
namespace ryle::correlate::detail {
namespace {

// re and im of 64 spectra from one block of bytes to wherever `place_*` says.
inline void split_nibbles(const std::uint8_t* from, std::int8_t* re, std::int8_t* im) {
  for (int t = 0; t < 32; ++t) {
    re[t] = static_cast<std::int8_t>(static_cast<std::int8_t>(from[t]) >> 4);
    im[t] = static_cast<std::int8_t>(static_cast<std::int8_t>(from[t] << 4) >> 4);
  }
}

inline void ci4_to_bytes(const std::uint8_t* from, std::uint8_t* to, std::int64_t time_stride) {
  for (int run = 0; run < 4; ++run) {
    auto* out = reinterpret_cast<std::int8_t*>(to + (run / 2) * time_stride + (run % 2) * 64);
    split_nibbles(from + 32 * run, out, out + 32);
  }
}

// x = 256 H + (x & 255) = 256 H + L + 128 with L = (x & 255) - 128 in -128..127: both are signed
// bytes, and the constant 128 (1 + i) is taken out of the sums exactly when they are folded
// (cpu/fold.cpp).
inline void ci16_to_bytes(const std::uint8_t* from, std::uint8_t* to, std::int64_t input_stride) {
  std::memcpy(to, from, 128);
  for (int k = 0; k < 128; ++k) to[input_stride + k] = from[128 + k] ^ 0x80u;
}

inline void expand_to_bytes(Expansion expansion, const std::uint8_t* from, std::uint8_t* to,
                            std::int64_t time_stride, std::int64_t input_stride) {
  if (expansion == Expansion::ci4_to_s8) ci4_to_bytes(from, to, time_stride);
  if (expansion == Expansion::ci16_to_s8) ci16_to_bytes(from, to, input_stride);
}

// A cell of bytes as 64 re and 64 im 16-bit values.
inline void widen(const std::uint8_t* bytes, std::uint8_t* to) {
  std::int16_t parts[128];
  for (int run = 0; run < 2; ++run) {
    for (int t = 0; t < 32; ++t) {
      parts[run * 32 + t] = static_cast<std::int8_t>(bytes[run * 64 + t]);
      parts[64 + run * 32 + t] = static_cast<std::int8_t>(bytes[run * 64 + 32 + t]);
    }
  }
  std::memcpy(to, parts, sizeof parts);
}

inline void expand_to_shorts(Expansion expansion, const std::uint8_t* from, std::uint8_t* to,
                             std::int64_t time_stride, std::int64_t input_stride) {
  std::uint8_t bytes[256];
  switch (expansion) {
    case Expansion::ci4_to_s16:
      ci4_to_bytes(from, bytes, 128);
      widen(bytes, to);
      widen(bytes + 128, to + time_stride);
      return;
    case Expansion::ci16_to_s16:
      ci16_to_bytes(from, bytes, 128);
      widen(bytes, to);
      widen(bytes + 128, to + input_stride);
      return;
    default:
      widen(from, to);
  }
}

// IEEE half to float, exact, subnormals included.
inline float from_half(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t rest = half & 0x7fffu;
  if (rest < 0x0400u) {  // zero and subnormal: value = rest 2^-24
    const float value = static_cast<float>(rest) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  const std::uint32_t bits =
      sign | (rest >= 0x7c00u ? (rest << 13) | 0x7f800000u : (rest << 13) + 0x38000000u);
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

// cf16: 32 spectra re 0-15 | im 0-15 | re 16-31 | im 16-31  ->  two cf32 cells of 16
inline void expand_to_floats(Expansion, const std::uint8_t* from, std::uint8_t* to,
                             std::int64_t time_stride, std::int64_t) {
  for (int part = 0; part < 4; ++part) {
    std::uint16_t halves[16];
    float values[16];
    std::memcpy(halves, from + 32 * part, 32);
    for (int t = 0; t < 16; ++t) values[t] = from_half(halves[t]);
    std::memcpy(to + (part / 2) * time_stride + (part % 2) * 64, values, 64);
  }
}

}  // namespace
}  // namespace ryle::correlate::detail
