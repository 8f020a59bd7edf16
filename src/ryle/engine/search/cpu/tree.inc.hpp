// SPDX-License-Identifier: BSD-3-Clause
// The nodes of the tree (fdmt) on a CPU: row[t] = sum over up to 16 parts of child[k][t +
// offset[k]]. Rows are bytes, 16-bit or 32-bit words along time; a lane is a sample. Sums of a row
// stay in registers from the first part to the last, so that each part is loaded once and each row
// stored once.
#pragma once
#include <algorithm>
#include <cstdint>

#include "ryle/engine/search/cpu/kernel.hpp"
#include "ryle/simd/unroll.hpp"

namespace ryle::search::detail {
namespace {

template <class T>
void children_of(const TreeMerge& w, std::int64_t row, const T* (&rows)[kMaxChildren]) {
  const std::int32_t* offsets = w.offsets + row * w.n_children;
  for (std::int64_t k = 0; k < w.n_children; ++k)
    rows[k] = static_cast<const T*>(w.children[k]) + offsets[k];
}

/// kVectors of 16-bit sums in registers.
template <class V, int kVectors>
void merge_words(const std::uint16_t* const* rows, std::int64_t n_rows, std::int64_t t,
                 std::uint16_t* to) {
  constexpr std::int64_t kLanes = V::kBytes / 2;
  typename V::Type sum[kVectors];
  simd::static_for<0, kVectors>([&](auto v) { sum[v] = V::load(rows[0] + t + kLanes * v); });
  for (std::int64_t k = 1; k < n_rows; ++k) {
    const std::uint16_t* row = rows[k] + t;
    simd::static_for<0, kVectors>(
        [&](auto v) { sum[v] = V::add16(sum[v], V::load(row + kLanes * v)); });
  }
  simd::static_for<0, kVectors>([&](auto v) { V::store(to + kLanes * v, sum[v]); });
}

template <class V>
void merge_u16(const TreeMerge& w) {
  constexpr std::int64_t kLanes = V::kBytes / 2;
  const std::uint16_t* rows[kMaxChildren];
  for (std::int64_t row = 0; row < w.n_rows; ++row) {
    children_of(w, row, rows);
    std::uint16_t* to = static_cast<std::uint16_t*>(w.to) + w.rows[row].to_at;
    const std::int64_t n = w.n + w.rows[row].extra;
    std::int64_t t = 0;
    for (; t + 8 * kLanes <= n; t += 8 * kLanes) merge_words<V, 8>(rows, w.n_children, t, to + t);
    for (; t + 2 * kLanes <= n; t += 2 * kLanes) merge_words<V, 2>(rows, w.n_children, t, to + t);
    for (; t + kLanes <= n; t += kLanes) merge_words<V, 1>(rows, w.n_children, t, to + t);
    if (t == n) continue;
    std::uint16_t rest[kLanes];
    merge_words<V, 1>(rows, w.n_children, t, rest);
    std::copy_n(rest, n - t, to + t);
  }
}

/// kVectors of bytes to 16-bit sums in order. kQuads: four rows at a time are added as bytes.
template <class V, bool kQuads, int kVectors>
void merge_byte_vectors(const std::uint8_t* const* rows, std::int64_t n_rows, std::int64_t t,
                        std::uint16_t* to) {
  typename V::Type total[kVectors], odd[kVectors];
  simd::static_for<0, kVectors>([&](auto v) { total[v] = odd[v] = V::zero(); });
  const auto at = [&](std::int64_t k, std::int64_t v) {
    return V::load(rows[k] + t + V::kBytes * v);
  };
  const auto add = [&](typename V::Type x, auto v) {
    V::pin(x);
    total[v] = V::add16(total[v], x);
    odd[v] = V::add16(odd[v], V::high_bytes(x));
  };
  std::int64_t k = 0;
  if constexpr (kQuads) {
    for (; k + 4 <= n_rows; k += 4)
      simd::static_for<0, kVectors>([&](auto v) {
        add(V::add8(V::add8(at(k, v), at(k + 1, v)), V::add8(at(k + 2, v), at(k + 3, v))), v);
      });
  }
  for (; k < n_rows; ++k) simd::static_for<0, kVectors>([&](auto v) { add(at(k, v), v); });
  simd::static_for<0, kVectors>([&](auto v) {
    typename V::Type low, high;
    V::in_order(V::sub16(total[v], V::bytes_up(odd[v])), odd[v], low, high);
    V::store(to + V::kBytes * v, low);
    V::store(to + V::kBytes * v + V::kBytes / 2, high);
  });
}

template <class V, bool kQuads>
void merge_bytes(const TreeMerge& w) {
  const std::uint8_t* rows[kMaxChildren];
  for (std::int64_t row = 0; row < w.n_rows; ++row) {
    children_of(w, row, rows);
    std::uint16_t* to = static_cast<std::uint16_t*>(w.to) + w.rows[row].to_at;
    const std::int64_t n = w.n + w.rows[row].extra;
    std::int64_t t = 0;
    for (; t + 4 * V::kBytes <= n; t += 4 * V::kBytes)
      merge_byte_vectors<V, kQuads, 4>(rows, w.n_children, t, to + t);
    for (; t + V::kBytes <= n; t += V::kBytes)
      merge_byte_vectors<V, kQuads, 1>(rows, w.n_children, t, to + t);
    if (t == n) continue;
    std::uint16_t rest[V::kBytes];
    merge_byte_vectors<V, kQuads, 1>(rows, w.n_children, t, rest);
    std::copy_n(rest, n - t, to + t);
  }
}

/// Above 65,535: few channels of the band's top levels, plain loops.
template <class T>
void merge_wide(const TreeMerge& w) {
  const T* rows[kMaxChildren];
  for (std::int64_t row = 0; row < w.n_rows; ++row) {
    children_of(w, row, rows);
    std::uint32_t* to = static_cast<std::uint32_t*>(w.to) + w.rows[row].to_at;
    const std::int64_t n = w.n + w.rows[row].extra;
    for (std::int64_t t = 0; t < n; ++t) to[t] = rows[0][t];
    for (std::int64_t k = 1; k < w.n_children; ++k) {
      const T* from = rows[k];
      for (std::int64_t t = 0; t < n; ++t) to[t] += from[t];
    }
  }
}

}  // namespace
}  // namespace ryle::search::detail
