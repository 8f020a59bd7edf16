// SPDX-License-Identifier: BSD-3-Clause
// The table of one instruction set from its vector.
#pragma once
#include "ryle/engine/search/cpu/boxcars.inc.hpp"
#include "ryle/engine/search/cpu/kernel.hpp"
#include "ryle/engine/search/cpu/series.inc.hpp"
#include "ryle/engine/search/cpu/sums.inc.hpp"
#include "ryle/engine/search/cpu/tree.inc.hpp"

namespace ryle::search::detail {
namespace {

template <class V>
constexpr CpuKernel make_kernel(const char* name) {
  CpuKernel k{};
  k.name = name;
  k.sum_rows = sum_rows<V>;
  k.accumulate = accumulate<V>;
  k.store_u16 = store_u16<V>;
  k.store_u32 = store_u32<V>;
  k.above_u16 = above_of<std::uint16_t>;
  k.above_u32 = above_of<std::uint32_t>;
  k.halve = halve<V>;
  k.cells = cells<V>;
  k.maxima = Boxcars<V>::maxima;
  k.screen_narrow = Boxcars<V>::narrow;
  k.screen_pairs = Boxcars<V>::pairs;
  k.screen_quads = Boxcars<V>::quads;
  k.moments_u16 = moments_of_u16<V>;
  k.moments_u32 = moments_of<std::uint32_t>;
  k.prefix_u16 = prefix_of<std::uint16_t>;
  k.prefix_u32 = prefix_of<std::uint32_t>;
  k.ranked = ranked;
  k.merge_bytes = merge_bytes<V, false>;
  k.merge_byte_quads = merge_bytes<V, true>;
  k.merge_u16 = merge_u16<V>;
  k.merge_u16_u32 = merge_wide<std::uint16_t>;
  k.merge_u32 = merge_wide<std::uint32_t>;
  return k;
}

}  // namespace
}  // namespace ryle::search::detail
