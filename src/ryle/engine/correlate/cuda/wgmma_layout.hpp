// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/core/baseline.hpp"
#include "ryle/core/samples.hpp"
#include "ryle/device/cuda/host_device.hpp"

/// Where everything of the Hopper correlator lies: rows in shared memory, operands, sums in
/// registers and in device memory, and who works on what. The kernel and a model of it on the host
/// (tests/engine/correlate) go through the same functions.
namespace ryle::correlate::wgmma {

inline constexpr int kTile = 128;      ///< inputs along an edge of a tile
inline constexpr int kGroupRows = 64;  ///< rows of a tile one warpgroup multiplies
inline constexpr int kWarpgroups = 2;  ///< that multiply
inline constexpr int kThreads = 256;   ///< that multiply; a warp more brings the samples
inline constexpr int kRowBytes = 128;  ///< one block of one input: [re im][re im] of 32 spectra
inline constexpr int kPartBytes = 32;  ///< one part of 32 spectra: a step of the tensor cores
inline constexpr int kSteps = kRowBytes / (2 * kPartBytes);  ///< of a block
inline constexpr int kSlotBytes = kTile * kRowBytes;         ///< one operand of one block

/// Byte of a slot at which 16-byte piece `piece` of row `row` lies: the order in which a copy with
/// a 128-byte swizzle leaves a box, without conflicts for eight rows of one piece.
RYLE_HOST_DEVICE constexpr int swizzled(int row, int piece) {
  return row * kRowBytes + ((piece ^ (row & 7)) << 4);
}

/// Byte of a slot from which lane `lane` of warp `warp` (of a warpgroup's four) has ldmatrix .x4
/// read its row of matrix lane / 8, for part `part` (0 re, 1 im) of step `step`.
RYLE_HOST_DEVICE constexpr int operand_a(int warpgroup, int warp, int lane, int step, int part) {
  const int row = warpgroup * kGroupRows + warp * 16 + (lane & 15);
  return swizzled(row, 4 * step + 2 * part + (lane >> 4));
}

/// Descriptor of operand B: rows from the shared-memory address `slot` + first_row on, swizzled by
/// 128 bytes, 1024 bytes from eight rows to the next eight; one part of one step.
/// @pre slot is a multiple of 1024, first_row of 8
RYLE_HOST_DEVICE constexpr std::uint64_t operand_b(unsigned slot, int first_row, int step,
                                                   int part) {
  constexpr std::uint64_t kEightRows = 8 * kRowBytes, kSwizzle128 = 1;
  const auto at = static_cast<unsigned>(first_row * kRowBytes + (2 * step + part) * kPartBytes);
  return ((slot + at) & 0x3ffffu) >> 4 | std::uint64_t{1} << 16 | (kEightRows >> 4) << 32 |
         kSwizzle128 << 62;
}

/// Tile {column, row} with column <= row of triangular index t: row (row + 1) / 2 + column.
struct Tile {
  int row = 0;
  int column = 0;
};

/// One unit of work: a tile of a channel, or, where a tile would be mostly empty, the only tile of
/// two channels (rows 0..63 the first, 64..127 the second).
struct Item {
  int channel = 0;
  Tile tile;
};

struct Layout {
  int n_inputs = 0;
  int n_channels = 0;
  bool paired = false;  ///< two channels a tile: n_inputs <= 64
  int tile_rows = 1;
  int n_tiles = 1;  ///< of a channel (or pair)
  std::int64_t n_items = 0;

  RYLE_HOST_DEVICE constexpr int registers() const { return paired ? 32 : 64; }  ///< of a part
  RYLE_HOST_DEVICE constexpr int part_sums() const { return registers() * kThreads; }
  RYLE_HOST_DEVICE constexpr std::int64_t item_sums() const { return 2 * part_sums(); }
  RYLE_HOST_DEVICE constexpr std::int64_t n_sums() const { return n_items * item_sums(); }
  /// Behind the tiles: sum_t re(v_i), [channel][input], for the tiles below the diagonal.
  RYLE_HOST_DEVICE constexpr int padded_inputs() const { return tile_rows * kTile; }
  RYLE_HOST_DEVICE constexpr std::int64_t n_input_sums() const {
    return tile_rows == 1 ? 0 : std::int64_t{n_channels} * padded_inputs();
  }

  RYLE_HOST_DEVICE Item item(std::int64_t id) const {
    if (paired) return {static_cast<int>(2 * id), {}};
    const int t = static_cast<int>(id % n_tiles);
    int row = 0;
    while (static_cast<std::int64_t>(row + 1) * (row + 2) / 2 <= t) ++row;
    return {static_cast<int>(id / n_tiles), {row, t - row * (row + 1) / 2}};
  }
};

inline Layout layout_of(std::int64_t n_inputs, std::int64_t n_channels) {
  Layout l;
  l.n_inputs = static_cast<int>(n_inputs);
  l.n_channels = static_cast<int>(n_channels);
  l.paired = n_inputs <= kGroupRows;
  l.tile_rows = static_cast<int>((n_inputs + kTile - 1) / kTile);
  l.n_tiles = static_cast<int>(n_pairs(l.tile_rows));
  l.n_items = l.paired ? (n_channels + 1) / 2 : n_channels * l.n_tiles;
  return l;
}

/// Offset of register r of a thread in one part of an item with n_registers a thread: a warp's sums
/// are one run of memory, four registers of a lane 16 bytes of it.
RYLE_HOST_DEVICE constexpr int sum_at(int thread, int r, int n_registers) {
  return thread / 32 * 32 * n_registers + r / 4 * 128 + thread % 32 * 4 + r % 4;
}

/// Offset of (row, column) in one part of an item. Lane l of warp w of a warpgroup holds rows
/// 16 w + l / 4 (+ 8), columns 8 n + 2 (l % 4) (+ 1).
RYLE_HOST_DEVICE constexpr int sum_offset(int row, int column, int n_registers) {
  const int lane = row % 8 * 4 + column % 8 / 2;
  const int r = column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
  return sum_at(row / 16 * 32 + lane, r, n_registers);
}

/// sum_t re(v_i) of this input is needed: there is a tile below the diagonal with it as a column.
RYLE_HOST_DEVICE constexpr bool needs_input_sums(const Layout& l, const Tile& tile) {
  return tile.row == tile.column && tile.row + 1 < l.tile_rows;
}

/// Where V_ij, i <= j, lies in what the kernel left: indices of sums.
struct SumOffsets {
  std::int64_t re = 0;
  std::int64_t im = 0;
  std::int64_t mirrored_im = 0;  ///< of (i, j); on the diagonal only
  bool diagonal = true;          ///< of the tiles
};

RYLE_HOST_DEVICE inline SumOffsets sum_offsets_of(const Layout& l, int channel, int i, int j) {
  std::int64_t item = channel / 2;
  int row = channel % 2 * kGroupRows + j, column = i;
  int mirrored_row = channel % 2 * kGroupRows + i, mirrored_column = j;
  bool diagonal = true;
  if (!l.paired) {
    const int tile_row = j / kTile, tile_column = i / kTile;
    item = std::int64_t{channel} * l.n_tiles + tile_row * (tile_row + 1) / 2 + tile_column;
    row = mirrored_column = j % kTile;
    column = mirrored_row = i % kTile;
    diagonal = tile_row == tile_column;
  }
  const std::int64_t re = item * l.item_sums(), im = re + l.part_sums();
  const int n = l.registers();
  return {re + sum_offset(row, column, n), im + sum_offset(row, column, n),
          im + sum_offset(mirrored_row, mirrored_column, n), diagonal};
}

/// V_ij, i <= j, of what the kernel left. Below the diagonal the second part holds
/// sum re_j im_i + (~im_j) re_i; on it G_ji = sum re_j im_i of the whole square, Im = G_ji - G_ij.
/// Sums wrap modulo 2^32 on the way.
RYLE_HOST_DEVICE inline ci64 value(const Layout& l, const std::int32_t* sums, int channel, int i,
                                   int j) {
  const std::int32_t* inputs = sums + l.n_sums();
  const SumOffsets at = sum_offsets_of(l, channel, i, j);
  auto imaginary = static_cast<std::uint32_t>(sums[at.im]);
  if (at.diagonal) imaginary -= static_cast<std::uint32_t>(sums[at.mirrored_im]);
  if (!at.diagonal)
    imaginary += static_cast<std::uint32_t>(inputs[std::int64_t{channel} * l.padded_inputs() + i]);
  return {sums[at.re], static_cast<std::int32_t>(imaginary)};
}

/// Work of a gulp cut into partitions, runs of (item, block): whole items in order first, a round
/// for all thread blocks at a time; what is left is cut along time, so that all end together.
struct Partitions {
  int n_blocks = 0;            ///< of a gulp
  std::int64_t n_whole = 0;    ///< partitions of one item each; items from here on are cut
  std::int64_t n_cut = 0;      ///< partitions of what is left
  std::int64_t cut_steps = 0;  ///< blocks of what is left

  RYLE_HOST_DEVICE std::int64_t n() const { return n_whole + n_cut; }
  /// Items of one run each, from the first on.
  RYLE_HOST_DEVICE std::int64_t n_overwritten() const {
    return n_cut * n_blocks == cut_steps ? n() : n_whole;
  }
  /// Steps [first, second) of partition p; step = item * n_blocks + block.
  struct Range {
    std::int64_t first, end;
  };
  RYLE_HOST_DEVICE Range range(std::int64_t p) const {
    if (p < n_whole) return {p * n_blocks, (p + 1) * n_blocks};
    const std::int64_t q = p - n_whole, before = n_whole * n_blocks;
    return {before + q * cut_steps / n_cut, before + (q + 1) * cut_steps / n_cut};
  }
};

/// Blocks of one item within a partition, in order: body(item, first block, blocks).
template <class Body>
RYLE_HOST_DEVICE void for_each_run(const Partitions& partitions, std::int64_t partition,
                                   const Body& body) {
  const Partitions::Range range = partitions.range(partition);
  for (std::int64_t step = range.first; step < range.end;) {
    const std::int64_t item = step / partitions.n_blocks;
    const auto block = static_cast<int>(step - item * partitions.n_blocks);
    const std::int64_t left = range.end - step;
    const int rest = partitions.n_blocks - block;
    const int n = left < rest ? static_cast<int>(left) : rest;
    body(item, block, n);
    step += n;
  }
}

/// @param concurrent thread blocks the device runs at a time
/// @param min_blocks of a cut partition: shorter ones are all start-up
inline Partitions partitions_of(std::int64_t n_items, std::int64_t n_blocks,
                                std::int64_t concurrent, std::int64_t min_blocks) {
  Partitions s;
  s.n_blocks = static_cast<int>(n_blocks);
  s.n_whole = n_items / concurrent * concurrent;
  const std::int64_t rest = n_items - s.n_whole;
  s.cut_steps = rest * n_blocks;
  s.n_cut = s.cut_steps / min_blocks;
  if (s.n_cut > concurrent) s.n_cut = concurrent;
  if (s.n_cut < rest) s.n_cut = rest;
  return s;
}

}  // namespace ryle::correlate::wgmma
