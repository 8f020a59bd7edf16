// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/engine/correlate/cuda/wgmma_layout.hpp"

/// Float sums of the Hopper correlator. Their bits depend on the order of additions, so no order
/// is left to chance: what a partition has of an item that is cut along time waits in a slot, and
/// whoever brings the last part adds all up in the order of time.
namespace ryle::correlate::wgmma {

/// The parts of an item that is cut: one for each of n partitions that follow each other, in slots
/// that do.
struct Parts {
  std::int64_t first_slot = 0;
  int n = 1;
};

/// Slot of what a partition has of an item, both numbered among those that are cut. Along the work
/// either number grows by one from part to part, or both do: no two parts share a slot.
RYLE_HOST_DEVICE constexpr std::int64_t slot_of(std::int64_t cut_partition, std::int64_t cut_item) {
  return cut_partition + cut_item;
}

/// Slots for all parts of a launch, whatever the length of its gulp.
constexpr std::int64_t n_part_slots(std::int64_t n_items, std::int64_t concurrent) {
  const std::int64_t rest = n_items % concurrent;
  return rest == 0 ? 0 : rest + concurrent - 1;
}

/// @param cut_item number of the item among those that are cut
RYLE_HOST_DEVICE inline Parts parts_of(const Partitions& s, std::int64_t cut_item) {
  const std::int64_t begin = cut_item * s.n_blocks, end = begin + s.n_blocks;
  const auto first_step = [&](std::int64_t partition) { return partition * s.cut_steps / s.n_cut; };
  std::int64_t partition = begin * s.n_cut / s.cut_steps;  // rounded down: it or the next one
  while (first_step(partition + 1) <= begin) ++partition;
  Parts parts{slot_of(partition, cut_item), 1};
  while (first_step(partition + parts.n) < end) ++parts.n;
  return parts;
}

/// V_ij, i <= j, of what the kernel left: on the diagonal Im = G_ji - G_ij, G_ji = sum re_j im_i.
RYLE_HOST_DEVICE inline void value(const Layout& l, const float* sums, int channel, int i, int j,
                                   double (&parts)[2]) {
  const SumOffsets at = sum_offsets_of(l, channel, i, j);
  parts[0] = sums[at.re];
  parts[1] = sums[at.im];
  if (at.diagonal) parts[1] -= sums[at.mirrored_im];
}

}  // namespace ryle::correlate::wgmma
