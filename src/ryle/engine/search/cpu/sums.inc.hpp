// SPDX-License-Identifier: BSD-3-Clause
// The exact sums on a CPU, D[trial][t] = sum over groups of row[group, trial][t], written once for
// every width of vector. Rows are bytes (sums of 4 channels, [row][sample]), accumulators 16-bit
// words
// ([trial][sample]). Bytes are added as 16-bit words, sums and odd bytes apart: even = total -
// 256 odd. Within V::kBytes samples of an accumulator the even ones come first. Loads bind: 64
// bytes at any offset, and rows that change with every trial (docs/decisions/0013).
#pragma once
#include <algorithm>
#include <cstdint>

#include "ryle/engine/search/cpu/kernel.hpp"
#include "ryle/simd/unroll.hpp"

namespace ryle::search::detail {
namespace {

template <class V>
void sum_rows(const std::uint8_t* const* rows, int n_rows, std::uint8_t* to, std::int64_t n) {
  const std::uint8_t *a = rows[0], *b = rows[1];
  if (n_rows == 2) {
    for (std::int64_t t = 0; t < n; t += V::kBytes)
      V::store(to + t, V::add8(V::load(a + t), V::load(b + t)));
    return;
  }
  const std::uint8_t *c = rows[2], *d = rows[3];
  for (std::int64_t t = 0; t < n; t += V::kBytes) {
    V::store(to + t, V::add8(V::add8(V::load(a + t), V::load(b + t)),
                             V::add8(V::load(c + t), V::load(d + t))));
  }
}

/// kN trials x 2 vectors in registers.
template <class V, int kN>
void sum_tile(const Accumulation& w, std::int64_t trial, std::int64_t t) {
  typename V::Type total[2 * kN], odd[2 * kN];
  simd::static_for<0, 2 * kN>([&](auto k) { total[k] = odd[k] = V::zero(); });
  const std::uint32_t* starts = w.starts + trial;
  const std::uint8_t* base = w.base + t;
  for (std::int64_t g = 0; g < w.n_groups; ++g, starts += w.n_trials) {
    simd::static_for<0, 2 * kN>([&](auto k) {
      typename V::Type x = V::load(base + starts[k / 2] + V::kBytes * (k % 2));
      V::pin(x);
      total[k] = V::add16(total[k], x);
      odd[k] = V::add16(odd[k], V::high_bytes(x));
    });
  }
  simd::static_for<0, 2 * kN>([&](auto k) {
    std::uint16_t* sums = w.sums + (trial + k / 2) * w.sum_stride + t + V::kBytes * (k % 2);
    typename V::Type e = V::sub16(total[k], V::bytes_up(odd[k])), o = odd[k];
    if (!w.first) {
      e = V::add16(e, V::load(sums));
      o = V::add16(o, V::load(sums + V::kBytes / 2));
    }
    V::store(sums, e);
    V::store(sums + V::kBytes / 2, o);
  });
}

/// Adds 8 rows to the low bytes of the sums. @return their average, rounded upwards thrice
template <class V>
[[gnu::always_inline]] inline typename V::Type add_rows(const std::uint8_t* const (&rows)[8],
                                                        std::int64_t at, typename V::Type& low) {
  using Type = typename V::Type;
  // Written out: gcc keeps arrays that two loops share in memory.
  Type a = V::load(rows[0] + at), b = V::load(rows[1] + at), c = V::load(rows[2] + at),
       d = V::load(rows[3] + at);
  V::pin(a), V::pin(b), V::pin(c), V::pin(d);
  low = V::add8(low, V::add8(V::add8(a, b), V::add8(c, d)));
  V::pin(low);  // else gcc gathers the sums of all rows for the end
  const Type first = V::average8(V::average8(a, b), V::average8(c, d));
  a = V::load(rows[4] + at), b = V::load(rows[5] + at), c = V::load(rows[6] + at),
  d = V::load(rows[7] + at);
  V::pin(a), V::pin(b), V::pin(c), V::pin(d);
  low = V::add8(low, V::add8(V::add8(a, b), V::add8(c, d)));
  V::pin(low);
  return V::average8(first, V::average8(V::average8(a, b), V::average8(c, d)));
}

/// The same of 8 kEights rows and four vectors (or two): one more rounding for each doubling.
/// Neither arrays nor structures: gcc keeps them in memory.
template <class V, int kEights, class Type = typename V::Type>
[[gnu::always_inline]] inline void add_rows(const std::uint8_t* base, const std::uint32_t* starts,
                                            std::int64_t step, Type& low0, Type& low1, Type& low2,
                                            Type& low3, Type& mean0, Type& mean1, Type& mean2,
                                            Type& mean3) {
  constexpr bool kFour = V::kVectors == 4;
  if constexpr (kEights == 1) {
    const auto row = [&](std::int64_t k) { return base + starts[k * step]; };
    const std::uint8_t* const rows[8] = {row(0), row(1), row(2), row(3),
                                         row(4), row(5), row(6), row(7)};
    mean0 = add_rows<V>(rows, 0, low0);
    mean1 = add_rows<V>(rows, V::kBytes, low1);
    if constexpr (kFour) mean2 = add_rows<V>(rows, 2 * V::kBytes, low2);
    if constexpr (kFour) mean3 = add_rows<V>(rows, 3 * V::kBytes, low3);
  } else {
    Type x0, x1, x2, x3;
    add_rows<V, kEights / 2>(base, starts, step, low0, low1, low2, low3, mean0, mean1, mean2,
                             mean3);
    add_rows<V, kEights / 2>(base, starts + 4 * kEights * step, step, low0, low1, low2, low3, x0,
                             x1, x2, x3);
    mean0 = V::average8(mean0, x0);
    mean1 = V::average8(mean1, x1);
    if constexpr (kFour) mean2 = V::average8(mean2, x2);
    if constexpr (kFour) mean3 = V::average8(mean3, x3);
  }
}

/// Sums of 2^kLog rows from their low bytes and their average. A binary tree of averages rounded
/// upwards says at most kLog / 2 too much: 2^kLog times it is the sum and 0 to 192 (kLog = 6) more,
/// so the sum is the largest number up to it with the low byte known. To `sums`, or, complete, to
/// `to` in the order of time.
template <class V, int kLog>
[[gnu::always_inline]] inline void store_sum(typename V::Type mean, typename V::Type low,
                                             std::uint16_t* sums, bool first, std::uint16_t* to) {
  using Type = typename V::Type;
  static_assert((1 << kLog) * kLog / 2 < 256);
  const Type whole = V::template times<kLog>(V::both(mean, V::all16(255)));  // of the even ones
  const Type bytes =
      V::both(V::template times<kLog>(mean), V::all8(static_cast<std::uint8_t>(255 << kLog)));
  const Type excess = V::sub8(bytes, low);  // of even and odd ones
  Type e = V::sub16(whole, V::both(excess, V::all16(255)));
  Type o = V::sub16(V::template times<kLog>(V::high_bytes(mean)), V::high_bytes(excess));
  if (!first) {
    e = V::add16(e, V::load(sums));
    o = V::add16(o, V::load(sums + V::kBytes / 2));
  }
  if (to != nullptr) {
    sums = to;
    V::in_order(e, o, e, o);
  }
  V::store(sums, e);
  V::store(sums + V::kBytes / 2, o);
}

/// One trial x V::kVectors vectors, 2^kLog groups.
template <class V, int kLog>
[[gnu::noinline]] void sum_trial(const Accumulation& w, std::int64_t trial, std::int64_t t) {
  typename V::Type low0 = V::zero(), low1 = low0, low2 = low0, low3 = low0;
  typename V::Type mean0, mean1, mean2, mean3;
  add_rows<V, (1 << kLog) / 8>(w.base + t, w.starts + trial, w.n_trials, low0, low1, low2, low3,
                               mean0, mean1, mean2, mean3);
  std::uint16_t* const sums = w.sums + trial * w.sum_stride + t;
  std::uint16_t* const to = w.to == nullptr ? nullptr : w.to + trial * w.to_stride + t;
  const auto store = [&](typename V::Type average, typename V::Type bytes, std::int64_t at) {
    store_sum<V, kLog>(average, bytes, sums + at, w.first, to == nullptr ? nullptr : to + at);
  };
  store(mean0, low0, 0);
  store(mean1, low1, V::kBytes);
  if constexpr (V::kVectors == 2) return;
  store(mean2, low2, 2 * V::kBytes);
  store(mean3, low3, 3 * V::kBytes);
}

/// Whether 2^kLog groups, or more by a factor up to 8, are what there is.
template <class V, int kLog>
bool sum_trials(const Accumulation& w) {
  if (w.n_groups != 1 << kLog) {
    if constexpr (kLog < 6) return sum_trials<V, kLog + 1>(w);
    return false;
  }
  for (std::int64_t t = 0; t < w.n; t += V::kVectors * V::kBytes)
    for (std::int64_t i = 0; i < w.n_trials; ++i) sum_trial<V, kLog>(w, i, t);
  return true;
}

/// All trials of a piece of time before the next: their rows overlap and stay in the first-level
/// cache.
template <class V>
bool accumulate(const Accumulation& w) {
  if constexpr (requires { V::average8(V::zero(), V::zero()); }) {
    if (sum_trials<V, 3>(w)) return w.to != nullptr;
  }
  for (std::int64_t t = 0; t < w.n; t += 2 * V::kBytes) {
    std::int64_t i = 0;
    for (; i + V::kTrials <= w.n_trials; i += V::kTrials) sum_tile<V, V::kTrials>(w, i, t);
    for (; i < w.n_trials; ++i) sum_tile<V, 1>(w, i, t);
  }
  return false;
}

template <class V>
void store_in_order(const std::uint16_t* sums, std::uint16_t* to) {
  typename V::Type low, high;
  V::in_order(V::load(sums), V::load(sums + V::kBytes / 2), low, high);
  V::store(to, low);
  V::store(to + V::kBytes / 2, high);
}

template <class V>
void store_u16(const std::uint16_t* sums, std::uint16_t* to, std::int64_t n) {
  std::int64_t t = 0;
  for (; t + V::kBytes <= n; t += V::kBytes) store_in_order<V>(sums + t, to + t);
  if (t == n) return;
  std::uint16_t rest[V::kBytes];
  store_in_order<V>(sums + t, rest);
  std::copy_n(rest, n - t, to + t);
}

template <class V>
void store_u32(const std::uint16_t* sums, std::uint32_t* to, std::int64_t n, bool first) {
  for (std::int64_t t = 0; t < n; t += V::kBytes) {
    std::uint16_t values[V::kBytes];
    const std::int64_t part = std::min<std::int64_t>(V::kBytes, n - t);
    store_in_order<V>(sums + t, values);
    for (std::int64_t k = 0; k < part; ++k) to[t + k] = first ? values[k] : to[t + k] + values[k];
  }
}

}  // namespace
}  // namespace ryle::search::detail
