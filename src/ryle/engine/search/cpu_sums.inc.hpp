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

/// All trials of a piece of time before the next: their rows overlap and stay in the first-level
/// cache.
template <class V>
void accumulate(const Accumulation& w) {
  for (std::int64_t t = 0; t < w.n; t += 2 * V::kBytes) {
    std::int64_t i = 0;
    for (; i + V::kTrials <= w.n_trials; i += V::kTrials) sum_tile<V, V::kTrials>(w, i, t);
    for (; i < w.n_trials; ++i) sum_tile<V, 1>(w, i, t);
  }
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
