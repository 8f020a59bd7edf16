// SPDX-License-Identifier: BSD-3-Clause
// Loops over one dedispersed series ([sample], 16 or 32 bits), compiled once per instruction set:
// moments n, sum x, sum x^2 between clips, and cells for the screen of boxcars
// (cpu/boxcars.inc.hpp). The compiler makes the vectors.
#pragma once
#include <algorithm>
#include <cstdint>

namespace ryle::search::detail {
namespace {

/// Adds n, sum, squares of x - center where |x - center| <= clip to moments[0..2].
template <class T>
void moments_of(const T* x, std::int64_t n, std::int64_t center, std::int64_t clip,
                std::int64_t* moments) {
  const auto middle = static_cast<std::int32_t>(center);
  const auto limit = static_cast<std::int32_t>(std::min<std::int64_t>(clip, 1 << 30));
  // As many squares as fit 31 bits; wider clips go the long way.
  const bool narrow = limit < (1 << 12);
  const std::int64_t block =
      narrow ? std::min<std::int64_t>(
                   4096, 0x7fffffff / std::max<std::int64_t>(1, std::int64_t{limit} * limit))
             : 64;
  for (std::int64_t first = 0; first < n; first += block) {
    const auto end = static_cast<int>(std::min<std::int64_t>(block, n - first));
    const T* part = x + first;
    if (narrow) {
      std::int32_t count = 0, sum = 0, squares = 0;
      for (int t = 0; t < end; ++t) {
        const std::int32_t d = static_cast<std::int32_t>(part[t]) - middle;
        const std::int32_t keep = (d <= limit && d >= -limit) ? -1 : 0;
        const std::int32_t v = d & keep;
        count -= keep;
        sum += v;
        squares += v * v;
      }
      moments[0] += count;
      moments[1] += sum;
      moments[2] += squares;
      continue;
    }
    for (int t = 0; t < end; ++t) {
      const std::int64_t d = static_cast<std::int64_t>(part[t]) - center;
      if (d > clip || d < -clip) continue;
      ++moments[0];
      moments[1] += d;
      moments[2] += d * d;
    }
  }
}

/// to[t] = sum of x[u] - center for u < t; n + 1 values.
template <class T>
void prefix_of(const T* x, std::int64_t n, std::int32_t center, std::int32_t* to) {
  std::uint32_t sum = 0;  // differences of wrapped sums are right
  for (std::int64_t t = 0; t < n; ++t) {
    to[t] = static_cast<std::int32_t>(sum);
    sum += static_cast<std::uint32_t>(x[t]) - static_cast<std::uint32_t>(center);
  }
  to[n] = static_cast<std::int32_t>(sum);
}

/// The value with `rank` smaller ones before it, bit by bit: counting vectorises, sorting does not.
inline std::uint32_t ranked(const std::uint32_t* x, std::int64_t n, std::int64_t rank) {
  std::uint32_t maximum = 0;
  for (std::int64_t t = 0; t < n; ++t) maximum |= x[t];
  std::uint32_t value = 0;
  for (int bit = 31; bit >= 0; --bit) {
    const std::uint32_t tried = value | (std::uint32_t{1} << bit);
    if (tried > maximum) continue;
    std::int32_t below = 0;
    for (std::int64_t t = 0; t < n; ++t) below += x[t] < tried ? 1 : 0;
    if (below <= rank) value = tried;
  }
  return value;
}

/// to[t] = ceil(max(x[t] - base, 0) / 2^shift), at most 65,535.
template <class T>
void above_of(const T* __restrict x, std::int64_t n, std::uint32_t base, int shift,
              std::uint16_t* __restrict to) {
  if (sizeof(T) == 2 && shift == 0) {
    const auto low = static_cast<std::uint16_t>(base);
    for (std::int64_t t = 0; t < n; ++t)
      to[t] = static_cast<std::uint16_t>(
          std::max<std::uint16_t>(static_cast<std::uint16_t>(x[t]), low) - low);
    return;
  }
  const std::uint32_t round = (std::uint32_t{1} << shift) - 1;
  for (std::int64_t t = 0; t < n; ++t) {
    const std::uint32_t v = std::max<std::uint32_t>(x[t], base) - base;
    // The order keeps v + round from wrapping.
    const std::uint32_t whole = (v >> shift) + ((v & round) != 0 ? 1u : 0u);
    to[t] = static_cast<std::uint16_t>(std::min<std::uint32_t>(whole, 65535));
  }
}

template <class V>
void halve(const std::uint16_t* x, std::int64_t n, std::uint16_t less, std::uint16_t* to) {
  std::int64_t t = 0;
  if constexpr (requires { V::average_neighbors(V::zero(), V::zero()); }) {
    constexpr std::int64_t kLanes = V::kBytes / 2;
    const auto base = V::all16(less);
    for (; t + kLanes <= n; t += kLanes)
      V::store(to + t,
               V::subtract_saturated(
                   V::average_neighbors(V::load(x + 2 * t), V::load(x + 2 * t + kLanes)), base));
  }
  for (; t < n; ++t) {
    const int average = (x[2 * t] + x[2 * t + 1] + 1) >> 1;
    to[t] = static_cast<std::uint16_t>(std::max(average, int{less}) - less);
  }
}

template <class V>
void cells(const std::uint16_t* x, std::int64_t n, std::uint16_t scale, std::uint8_t* to) {
  std::int64_t t = 0;
  if constexpr (requires { V::multiply_high(V::zero(), V::zero()); }) {
    const auto factor = V::all16(scale), one = V::all16(1), maximum = V::all16(255);
    const auto cell = [&](const std::uint16_t* at) {
      return V::min16(V::add16(V::multiply_high(V::load(at), factor), one), maximum);
    };
    for (; t + V::kBytes <= n; t += V::kBytes)
      V::store(to + t, V::pack(cell(x + t), cell(x + t + V::kBytes / 2)));
  }
  for (; t < n; ++t)
    to[t] = static_cast<std::uint8_t>(
        std::min<std::uint32_t>((std::uint32_t{x[t]} * scale >> 16) + 1, 255));
}

/// moments_of() with products of pairs of words.
template <class V>
void moments_of_u16(const std::uint16_t* x, std::int64_t n, std::int64_t center, std::int64_t clip,
                    std::int64_t* moments) {
  std::int64_t t = 0;
  if constexpr (requires { V::sum_products(V::zero(), V::zero()); }) {
    constexpr std::int64_t kLanes = V::kBytes / 2;
    // Two squares a lane and vector in 31 bits; wider clips go the long way.
    const std::int64_t maximum =
        clip < (1 << 12) ? std::min<std::int64_t>(1024, 0x7fffffff / (2 * clip * clip + 1)) : 0;
    const auto middle = V::all16(static_cast<std::uint16_t>(center));
    const auto limit = V::all16(static_cast<std::uint16_t>(clip)), one = V::all16(1);
    while (maximum > 0 && t + kLanes <= n) {
      const std::int64_t end = std::min(t + maximum * kLanes, t + (n - t) / kLanes * kLanes);
      auto count = V::zero(), sum = V::zero(), squares = V::zero();
      for (; t < end; t += kLanes) {
        const auto v = V::load(x + t);
        const auto distance =
            V::either(V::subtract_saturated(v, middle), V::subtract_saturated(middle, v));
        const auto near = V::at_most(distance, limit);  // all ones
        const auto d = V::both(V::sub16(v, middle), near);
        count = V::sub16(count, near);
        sum = V::add32(sum, V::sum_products(d, one));
        squares = V::add32(squares, V::sum_products(d, d));
      }
      moments[0] += V::total32(V::sum_products(count, one));
      moments[1] += V::total32(sum);
      moments[2] += V::total32(squares);
    }
  }
  moments_of(x + t, n - t, center, clip, moments);
}

}  // namespace
}  // namespace ryle::search::detail
