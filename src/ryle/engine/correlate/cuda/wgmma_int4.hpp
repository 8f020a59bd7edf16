// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/engine/correlate/cuda/wgmma_layout.hpp"

/// Where ci4 lies in the Hopper correlator: a row of a slot is 128 spectra, a byte each (re << 4 |
/// im & 15); a stage holds them widened, two slots as blocks of ci8 have them.
namespace ryle::correlate::wgmma {

inline constexpr int kStages = 3;
inline constexpr int kStageBytes = 2 * kSlotBytes;
inline constexpr int kWideners = 3;  ///< warps; the fourth of their warpgroup brings the samples
inline constexpr int kMaxSlotsOfInt4 = 6;

/// As operand_a(), of codes: 32 spectra of step 0..3, both parts in a byte.
RYLE_HOST_DEVICE constexpr int operand_int4(int warpgroup, int warp, int lane, int step) {
  const int row = warpgroup * kGroupRows + warp * 16 + (lane & 15);
  return swizzled(row, 2 * step + (lane >> 4));
}

/// Byte of a stage for part `part` (0 re, 1 im) of the 16 spectra in piece `piece` of a row.
RYLE_HOST_DEVICE constexpr int widened(int row, int piece, int part) {
  const int slot = piece / 4, step = piece % 4 / 2;
  return slot * kSlotBytes + swizzled(row, 4 * step + 2 * part + piece % 2);
}

}  // namespace ryle::correlate::wgmma
