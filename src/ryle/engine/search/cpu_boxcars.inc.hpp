// SPDX-License-Identifier: BSD-3-Clause
// Every boxcar of a row as the sum of two narrower ones, 16 bits wide, compared with its limit.
// Values are >= 0 and additions saturate, so a result is min(sum, 65535) whatever the order. Pieces
// of 512 starts keep the narrower boxcars in the first-level cache.
#pragma once
#include <algorithm>
#include <cstdint>

#include "ryle/engine/search/cpu_kernel.hpp"

namespace ryle::search::detail {
namespace {

constexpr std::int64_t kPiece = 512;          // starts
constexpr std::int64_t kReach = kPiece + 64;  // and what the wider boxcars need behind them

template <class V>
struct Boxcars {
  using Type = typename V::Type;
  static constexpr std::int64_t kLanes = V::kBytes / 2;
  using Row = std::uint16_t[kReach + 64];

  static Type sum(const std::uint16_t* a, const std::uint16_t* b) {
    return V::add_saturated(V::load(a), V::load(b));
  }
  static Type plus(Type a, const std::uint16_t* b) { return V::add_saturated(a, V::load(b)); }

  static void narrow(const std::uint16_t* y, Row& s2, Row& s3, Row& s4, Row& s7, Row& s8, Row& s11,
                     Row& s16, std::int64_t n) {
    // Each reaches as far as the wider ones look.
    for (std::int64_t t = 0; t < n + 32; t += kLanes) {
      const Type two = sum(y + t, y + t + 1);
      V::store(s2 + t, two);
      V::store(s3 + t, plus(two, y + t + 2));
    }
    for (std::int64_t t = 0; t < n + 32; t += kLanes) {
      const Type four = sum(s2 + t, s2 + t + 2);
      V::store(s4 + t, four);
      V::store(s7 + t, plus(four, s3 + t + 4));
    }
    for (std::int64_t t = 0; t < n + 32; t += kLanes) V::store(s8 + t, sum(s4 + t, s4 + t + 4));
    for (std::int64_t t = 0; t < n + 16; t += kLanes) {
      const Type eight = V::load(s8 + t);
      V::store(s11 + t, plus(eight, s3 + t + 8));
      V::store(s16 + t, plus(eight, s8 + t + 8));
    }
  }

  static void wide(const Row& s3, const Row& s7, const Row& s11, const Row& s16,
                   const std::uint16_t* below, std::int64_t n, std::uint8_t* hits,
                   std::int64_t stride) {
    const Type b19 = V::all16(below[12]), b23 = V::all16(below[13]), b27 = V::all16(below[14]),
               b32 = V::all16(below[15]);
    for (std::int64_t block = 0; block < n; block += 64) {
      Type over = V::zero(), over32 = V::zero();
      for (std::int64_t t = block; t < block + 64; t += kLanes) {
        const Type s = V::load(s16 + t);
        over = V::either(over, V::subtract_saturated(plus(s, s3 + t + 16), b19));
        over = V::either(over, V::subtract_saturated(plus(s, s7 + t + 16), b23));
        over = V::either(over, V::subtract_saturated(plus(s, s11 + t + 16), b27));
        over32 = V::either(over32, V::subtract_saturated(plus(s, s16 + t + 16), b32));
      }
      hits[block / 64] = V::any(over) ? 1 : 0;
      hits[stride + block / 64] = V::any(over32) ? 1 : 0;
    }
  }

  /// Octaves {1}, {2 3}, {4 5 6 7}, {8 10 11 13} and 16, which belongs to {16 19 23 27}.
  static void upto16(const std::uint16_t* y, const Row& s2, const Row& s3, const Row& s4,
                     const Row& s7, const Row& s8, const Row& s11, const Row& s16, Row& s5,
                     const std::uint16_t* below, std::int64_t n, std::uint8_t* hits,
                     std::int64_t stride) {
    Type b[12];
    for (int k = 0; k < 12; ++k) b[k] = V::all16(below[k]);
    for (std::int64_t t = 0; t < n + 16; t += kLanes)
      V::store(s5 + t, plus(V::load(s4 + t), y + t + 4));
    const auto over = [](Type value, Type limit) { return V::subtract_saturated(value, limit); };
    for (std::int64_t block = 0; block < n; block += 64) {
      Type o1 = V::zero(), o2 = o1, o4 = o1, o8 = o1;
      for (std::int64_t t = block; t < block + 64; t += kLanes) {
        o1 = V::either(o1, over(V::load(y + t), b[0]));
        o2 = V::either(o2, V::either(over(V::load(s2 + t), b[1]), over(V::load(s3 + t), b[2])));
        const Type four = V::load(s4 + t), eight = V::load(s8 + t);
        o4 = V::either(o4, V::either(over(four, b[3]), over(V::load(s5 + t), b[4])));
        o4 = V::either(o4,
                       V::either(over(plus(four, s2 + t + 4), b[5]), over(V::load(s7 + t), b[6])));
        o8 = V::either(o8, V::either(over(eight, b[7]), over(plus(eight, s2 + t + 8), b[8])));
        o8 = V::either(
            o8, V::either(over(V::load(s11 + t), b[9]), over(plus(eight, s5 + t + 8), b[10])));
      }
      std::uint8_t* to = hits + block / 64;
      to[0] = V::any(o1) ? 1 : 0;
      to[stride] = V::any(o2) ? 1 : 0;
      to[2 * stride] = V::any(o4) ? 1 : 0;
      to[3 * stride] = V::any(o8) ? 1 : 0;
    }
    for (std::int64_t block = 0; block < n; block += 64) {
      Type o16 = V::zero();
      for (std::int64_t t = block; t < block + 64; t += kLanes)
        o16 = V::either(o16, over(V::load(s16 + t), b[11]));
      if (V::any(o16)) hits[4 * stride + block / 64] = 1;
    }
  }

  template <bool kFull>
  static void screen(const BoxcarScreen& w) {
    alignas(64) Row s2, s3, s4, s5, s7, s8, s11, s16;
    for (std::int64_t first = 0; first < w.n_blocks; first += kPiece / 64) {
      const std::int64_t n = std::min(kPiece, (w.n_blocks - first) * 64);
      const std::uint16_t* y = w.values + first * 64;
      std::uint8_t* hits = w.hits + first;
      narrow(y, s2, s3, s4, s7, s8, s11, s16, n);
      if constexpr (kFull) {
        wide(s3, s7, s11, s16, w.below, n, hits + 4 * w.stride, w.stride);
        upto16(y, s2, s3, s4, s7, s8, s11, s16, s5, w.below, n, hits, w.stride);
      } else {
        wide(s3, s7, s11, s16, w.below, n, hits, w.stride);
      }
    }
  }
};

}  // namespace
}  // namespace ryle::search::detail
