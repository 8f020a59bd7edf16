// SPDX-License-Identifier: BSD-3-Clause
// Sums of rows of bytes, written once for every width of vector. Bytes are added as 16-bit words,
// sums and odd bytes apart: even = total - 256 odd. Within V::kBytes samples of an accumulator the
// even ones come first.
#pragma once
#include <algorithm>
#include <cstdint>

#include "ryle/engine/search/cpu_kernel.hpp"
#include "ryle/engine/search/cpu_unroll.inc.hpp"

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
  unrolled<2 * kN>([&](auto k) { total[k] = odd[k] = V::zero(); });
  const std::uint32_t* starts = w.starts + trial;
  const std::uint8_t* base = w.base + t;
  for (std::int64_t g = 0; g < w.n_groups; ++g, starts += w.n_trials) {
    unrolled<2 * kN>([&](auto k) {
      typename V::Type x = V::load(base + starts[k / 2] + V::kBytes * (k % 2));
      V::pin(x);
      total[k] = V::add16(total[k], x);
      odd[k] = V::add16(odd[k], V::high_bytes(x));
    });
  }
  unrolled<2 * kN>([&](auto k) {
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

/// One vector of samples of a trial. A binary tree of averages rounded upwards stands for what
/// 16-bit words cannot hold apart: eight times the average of 8 rows is their sum and 0 to 12 more.
/// The sum of the words has the low byte of the even sum, which with the averages is the sum of at
/// most 64 rows; what remains tells that of the odd samples.
template <class V>
struct TrialSum {
  using Type = typename V::Type;
  Type total = V::zero(), even = V::zero(), odd = V::zero();

  // Written out: gcc keeps arrays that two loops share in memory.
  [[gnu::always_inline]] void add(const std::uint8_t* const (&rows)[8], std::int64_t at) {
    Type a = V::load(rows[0] + at), b = V::load(rows[1] + at), c = V::load(rows[2] + at),
         d = V::load(rows[3] + at);
    V::pin(a), V::pin(b), V::pin(c), V::pin(d);
    total = V::add16(V::add16(total, V::add16(a, b)), V::add16(c, d));
    const Type first = V::average8(V::average8(a, b), V::average8(c, d));
    a = V::load(rows[4] + at), b = V::load(rows[5] + at), c = V::load(rows[6] + at),
    d = V::load(rows[7] + at);
    V::pin(a), V::pin(b), V::pin(c), V::pin(d);
    total = V::add16(V::add16(total, V::add16(a, b)), V::add16(c, d));
    const Type all = V::average8(first, V::average8(V::average8(a, b), V::average8(c, d)));
    even = V::add16(even, all);
    odd = V::add16(odd, V::high_bytes(all));
  }

  /// The largest number up to `most` with the low byte of `byte`.
  static Type below(Type most, Type byte) {
    return V::sub16(most, V::both(V::sub16(most, byte), V::all16(255)));
  }
  /// To `sums`, or, complete, to `to` in the order of time.
  [[gnu::always_inline]] void store(std::uint16_t* sums, bool first, std::uint16_t* to) const {
    Type e = below(V::times8(V::sub16(even, V::bytes_up(odd))), total);
#if RYLE_MUTANT == 1201
    Type o = below(V::times8(odd), V::high_bytes(total));
#else
    Type o = below(V::times8(odd), V::high_bytes(V::sub16(total, e)));
#endif
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
};

/// One trial x 256 or 64 bytes; n_groups a multiple of 8 and at most 64.
template <class V>
void sum_trial(const Accumulation& w, std::int64_t trial, std::int64_t t) {
  TrialSum<V> a, b, c, d;
  const std::uint32_t* starts = w.starts + trial;
  const std::uint8_t* const base = w.base + t;
  for (std::int64_t g = 0; g < w.n_groups; g += 8, starts += 8 * w.n_trials) {
    const auto row = [&](std::int64_t k) { return base + starts[k * w.n_trials]; };
    const std::uint8_t* const rows[8] = {row(0), row(1), row(2), row(3),
                                         row(4), row(5), row(6), row(7)};
    a.add(rows, 0);
    b.add(rows, V::kBytes);
    if constexpr (V::kVectors == 2) continue;
    c.add(rows, 2 * V::kBytes);
    d.add(rows, 3 * V::kBytes);
  }
  std::uint16_t* const sums = w.sums + trial * w.sum_stride + t;
  const auto store = [&](const TrialSum<V>& sum, std::int64_t at) {
    sum.store(sums + at, w.first, w.to == nullptr ? nullptr : w.to + trial * w.to_stride + t + at);
  };
  store(a, 0);
  store(b, V::kBytes);
  if constexpr (V::kVectors == 2) return;
  store(c, 2 * V::kBytes);
  store(d, 3 * V::kBytes);
}

/// All trials of a piece of time before the next: their rows overlap and stay in the first-level
/// cache.
template <class V>
bool accumulate(const Accumulation& w) {
  if constexpr (requires { V::average8(V::zero(), V::zero()); }) {
    if (w.n_groups % 8 == 0 && w.n_groups <= 64) {
      for (std::int64_t t = 0; t < w.n; t += V::kVectors * V::kBytes)
        for (std::int64_t i = 0; i < w.n_trials; ++i) sum_trial<V>(w, i, t);
      return w.to != nullptr;
    }
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
