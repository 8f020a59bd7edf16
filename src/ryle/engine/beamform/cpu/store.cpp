// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/beamform/cpu/store.hpp"

#include <bit>
#include <cstring>

#include "ryle/engine/beamform/dither.hpp"
#include "ryle/engine/beamform/implementations.hpp"

namespace ryle::beamform::detail {

std::uint16_t half_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);   // NaN
  if (size >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // >= 65520
  if (size < 0x38800000u) {
    // Below 2^-14: a multiple of 2^-24. Adding 0.5 puts that unit at the end of the mantissa, and
    // the addition rounds to nearest even.
    const float shifted = std::bit_cast<float>(size) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t rounded = size + 0xfffu + (size >> 13 & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

// Subnormals are multiples of 2^-24; the others get the larger exponent of a float.
float half_value(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16, size = half & 0x7fffu;
  if (size < 0x400u) {
    const float value = static_cast<float>(size) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  const std::uint32_t exponent = size >= 0x7c00u ? 0x70000000u : 0x38000000u;
  return std::bit_cast<float>(sign | ((size << 13) + exponent));
}

namespace {

template <class T>
T* row_of(const Rows& rows, std::int64_t lane) {
  return reinterpret_cast<T*>(rows.first + lane * rows.stride_bytes);
}

template <class T>
void narrow(const std::int32_t* codes, std::int64_t n, const Rows& to) {
  for (std::int64_t lane = 0; lane < to.n_lanes; ++lane) {
    T* out = row_of<T>(to, lane);
    for (std::int64_t k = 0; k < n; ++k) out[k] = static_cast<T>(codes[k * kLanes + lane]);
  }
}

// Value(part offset) of every (lane, time, pol) handed to `put`.
template <class Put>
void each(std::int64_t n, std::int64_t n_pols, std::int64_t n_lanes, const Put& put) {
  for (std::int64_t lane = 0; lane < n_lanes; ++lane) {
    for (std::int64_t pol = 0; pol < n_pols; ++pol) {
      for (std::int64_t k = 0; k < n; ++k)
        put(lane, k * n_pols + pol, 2 * pol * kPlane + k * kLanes + lane);
    }
  }
}

}  // namespace

// The largest half is 65504; what rounds beyond it, 65520 and above, is cut.
void store_fp16(const float* plane, std::int64_t n, std::uint32_t* n_low, std::uint32_t* n_high,
                const Rows& to) {
  for (std::int64_t lane = 0; lane < to.n_lanes; ++lane) {
    auto* out = row_of<std::uint16_t>(to, lane);
    for (std::int64_t k = 0; k < n; ++k) {
      const std::uint16_t half = half_of(plane[k * kLanes + lane]);
      const bool cut = (half & 0x7fffu) == 0x7c00u;
      n_low[lane] += cut && half > 0x7fffu;
      n_high[lane] += cut && half <= 0x7fffu;
      out[k] = cut ? static_cast<std::uint16_t>(half - 1) : half;
    }
  }
}

void store_codes(OutputFormat format, const std::int32_t* codes, std::int64_t n, const Rows& to) {
  if (format == OutputFormat::u8) return narrow<std::uint8_t>(codes, n, to);
  narrow<std::uint16_t>(codes, n, to);
}

void store_voltages(OutputFormat format, const float* planes, const std::int32_t* codes,
                    std::int64_t n, std::int64_t n_pols, const Rows& to) {
  using Index = std::int64_t;
  switch (format) {
    case OutputFormat::cf32:
      return each(n, n_pols, to.n_lanes, [&](Index lane, Index at, Index from) {
        row_of<cf32>(to, lane)[at] = {planes[from], planes[from + kPlane]};
      });
    case OutputFormat::cf16:
      return each(n, n_pols, to.n_lanes, [&](Index lane, Index at, Index from) {
        auto* out = row_of<std::uint16_t>(to, lane) + 2 * at;
        out[0] = half_of(planes[from]);
        out[1] = half_of(planes[from + kPlane]);
      });
    case OutputFormat::ci8:
      return each(n, n_pols, to.n_lanes, [&](Index lane, Index at, Index from) {
        row_of<ci8>(to, lane)[at] = {static_cast<std::int8_t>(codes[from]),
                                     static_cast<std::int8_t>(codes[from + kPlane])};
      });
    default:
      return each(n, n_pols, to.n_lanes, [&](Index lane, Index at, Index from) {
        row_of<std::uint8_t>(to, lane)[at] =
            static_cast<std::uint8_t>((codes[from] & 15) << 4 | (codes[from + kPlane] & 15));
      });
  }
}

void add_dither(float* plane, const float* scale, std::int64_t n, Tick first_tick,
                const std::uint64_t* keys, int part, std::int64_t n_lanes) {
  for (std::int64_t k = 0; k < n; ++k) {
    for (std::int64_t lane = 0; lane < n_lanes; ++lane) {
      float& value = plane[k * kLanes + lane];
      value = static_cast<float>(double{value} * double{scale[lane]} +
                                 dither(keys[lane], first_tick + k, part));
    }
  }
}

}  // namespace ryle::beamform::detail
