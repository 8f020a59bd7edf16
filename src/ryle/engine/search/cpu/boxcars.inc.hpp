// SPDX-License-Identifier: BSD-3-Clause
// The screen of boxcars on a CPU, in bytes: which blocks of 64 starts may hold a boxcar above its
// limit. Input are rows of cells of 1, 2 or 4 starts ([cell], uint8, rounded upwards). Sums of
// neighbouring cells saturate at 255 and are compared with limits; what a boxcar holds beyond the
// cells inside it is in the limits (detect_cpu.cpp). A lane is a start.
#pragma once
#include <algorithm>
#include <cstdint>

#include "ryle/engine/search/cpu/kernel.hpp"

namespace ryle::search::detail {
namespace {

template <class V>
struct Boxcars {
  using Type = typename V::Type;

  static Type plus(Type a, Type b) { return V::add_saturated8(a, b); }
  static Type over(Type sum, Type limit) { return V::subtract_saturated8(sum, limit); }

  static void maxima(const std::uint8_t* x, std::int64_t n, std::uint8_t* to) {
    for (std::int64_t first = 0; first < n; first += kStartsPerSegment) {
      const std::int64_t end = std::min(first + kStartsPerSegment, n);
      Type maximum = V::zero();
      for (std::int64_t t = first; t < end; t += V::kBytes)
        maximum = V::max8(maximum, V::load(x + t));
      std::uint8_t lanes[V::kBytes];
      V::store(lanes, maximum);
      std::uint8_t largest = 0;  // a loop that vectorizes
      for (const std::uint8_t lane : lanes) largest = std::max(largest, lane);
      *to++ = largest;
    }
  }

  /// Cells of 2^kDepth starts. One octave of hits.
  template <int kDepth>
  [[gnu::noinline]] static void mark(Type sums_over, std::int64_t cell, const CellScreen& w,
                                     std::uint8_t* hits) {
    constexpr std::int64_t kCells = 64 >> kDepth;  // of a block
    std::uint8_t lanes[V::kBytes];
    V::store(lanes, sums_over);
    for (std::int64_t k = 0; k < V::kBytes; ++k) {
      if (lanes[k] == 0) continue;
      const std::int64_t block = (cell + k) / kCells;
      if (block < w.n_blocks) hits[block] = 1;
      // Boxcars that cut the cell before this one.
      if (kDepth > 0 && (cell + k) % kCells == 0 && block > 0 && block <= w.n_blocks)
        hits[block - 1] = 1;
    }
  }
  template <int kDepth, int kOctaves>
  static unsigned mark_all(const Type (&sums_over)[kOctaves], std::int64_t cell,
                           const CellScreen& w) {
    Type any = sums_over[0];
    for (int o = 1; o < kOctaves; ++o) any = V::either(any, sums_over[o]);
    if (!V::any(any)) return 0;
    unsigned hit = 0;
    for (int o = 0; o < kOctaves; ++o) {
      if (!V::any(sums_over[o])) continue;
      mark<kDepth>(sums_over[o], cell, w, w.hits + o * w.stride);
      hit |= 1u << o;
    }
    return hit;
  }

  static unsigned narrow(const CellScreen& w) {
    unsigned hit = 0;
    Type b[7];
    for (int k = 0; k < 7; ++k) b[k] = V::all8(w.below[k]);
    for (std::int64_t t = 0; t < w.n_blocks * 64; t += V::kBytes) {
      const auto at = [&](int k) { return V::load(w.cells + t + k); };
      const Type one = at(0), third = at(2), fifth = at(4);
      const Type two = plus(one, at(1)), four = plus(two, plus(third, at(3)));
      const Type six = plus(four, plus(fifth, at(5)));
      const Type octaves[3] = {over(one, b[0]),
                               V::either(over(two, b[1]), over(plus(two, third), b[2])),
                               V::either(V::either(over(four, b[3]), over(plus(four, fifth), b[4])),
                                         V::either(over(six, b[5]), over(plus(six, at(6)), b[6])))};
      hit |= mark_all<0, 3>(octaves, t, w);
    }
    return hit;
  }

  /// One cell more than the blocks have: the boxcars that cut the last one.
  template <int kDepth, class Body>
  static unsigned for_segments(const CellScreen& w, const Body& body) {
    unsigned hit = 0;
    constexpr std::int64_t kCells = kStartsPerSegment >> kDepth;
    const std::int64_t n = w.n_blocks * (64 >> kDepth) + 1;
    const std::uint8_t* below = w.below;
    for (std::int64_t first = 0; first < n; first += kCells, below += 8) {
      Type b[6];
      for (int k = 0; k < 6; ++k) b[k] = V::all8(below[k]);
      for (std::int64_t t = first; t < std::min(first + kCells, n); t += V::kBytes)
        hit |= body(t, b);
    }
    return hit;
  }

  static unsigned pairs(const CellScreen& w) {
    return for_segments<1>(w, [&](std::int64_t t, const Type(&b)[6]) {
      const auto at = [&](int k) { return V::load(w.cells + t + k); };
      const Type third = at(2), fifth = at(4), seventh = at(6);
      const Type two = plus(at(0), at(1)), four = plus(two, plus(third, at(3)));
      const Type six = plus(four, plus(fifth, at(5)));
      const Type octaves[2] = {
          V::either(V::either(over(plus(two, third), b[0]), over(four, b[1])),
                    V::either(over(plus(four, fifth), b[2]), over(six, b[3]))),
          V::either(over(plus(six, seventh), b[4]), over(plus(six, plus(seventh, at(7))), b[5]))};
      return mark_all<1, 2>(octaves, t, w);
    });
  }

  static unsigned quads(const CellScreen& w) {
    return for_segments<2>(w, [&](std::int64_t t, const Type(&b)[6]) {
      const auto at = [&](int k) { return V::load(w.cells + t + k); };
      const Type fifth = at(4), seventh = at(6);
      const Type four = plus(plus(at(0), at(1)), plus(at(2), at(3)));
      const Type six = plus(four, plus(fifth, at(5)));
      const Type octaves[2] = {
          V::either(V::either(over(four, b[0]), over(plus(four, fifth), b[1])), over(six, b[2])),
          V::either(over(plus(six, seventh), b[3]), over(plus(six, plus(seventh, at(7))), b[4]))};
      return mark_all<2, 2>(octaves, t, w);
    });
  }
};

}  // namespace
}  // namespace ryle::search::detail
