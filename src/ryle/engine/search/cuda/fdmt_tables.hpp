// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/search/search.hpp"

/// Private to the tree on the device: its plan, and what its kernels take.
///
/// Rows of the tree lie in memory as words of two samples that are half a block apart: word t has
/// sample t below and sample t + half above. Rows that begin at any sample then begin at a word,
/// and nothing has to be moved by half a word.
namespace ryle::search::detail::device_tree {

inline constexpr int kTileWords = 256;       ///< outputs of a thread block, of each half
inline constexpr int kCodeTileWords = 1024;  ///< of one that adds codes
inline constexpr int kTileRows = 64;         ///< of a thread block, at most
inline constexpr int kCodeTileRows = 32;
inline constexpr int kGroupRows = 4;  ///< rows that a warp makes together
inline constexpr int kCodeParts = 8;
inline constexpr int kZeroBytes = 2 * kCodeTileWords;

/// A row of a part, from which a thread block reads.
struct Input {
  std::int32_t row;       ///< of the pass before
  std::int32_t time;      ///< first word, relative to the block's; multiple of 4
  std::int32_t offset;    ///< in shared memory, bytes
  std::int32_t n_pieces;  ///< of 16 bytes
};
/// The same of codes: a window of each half.
struct CodeInput {
  std::int32_t channel;
  std::int32_t time;      ///< first code, multiple of 16
  std::int32_t offset;    ///< of the window in shared memory, bytes
  std::int32_t n_pieces;  ///< of 16 bytes
  std::int32_t words;     ///< where its words of four codes begin, bytes
  std::int32_t n_words;   ///< multiple of 4
  std::int32_t unused[2];
};
/// Rows of one node that one thread block makes.
struct Tile {
  std::int32_t first_input, n_inputs;
  std::int32_t first_step;  ///< in `steps`
  std::int32_t n_groups;
  std::int32_t group_bytes;  ///< of its steps
  std::int32_t begin;        ///< first word that is wanted of any of these rows, multiple of 32
  std::int32_t extent;       ///< words wanted beyond those of the root
  std::int32_t n_bytes;      ///< of inputs and steps; of codes: of the windows of one half
};
static_assert(sizeof(Tile) % 16 == 0);

/// Sixteen bytes of the steps of a group of rows. First {number of pairs of parts of kind k in bits
/// 4 k .., first word wanted of any row, words wanted beyond those of the root, 0}, then the rows
/// (-1: none), then two pieces for each pair, by kind: where each row begins in the one part, and
/// in the other, bytes of shared memory. Bit r of a kind is set where row r + 1 begins elsewhere
/// than row r in either part; else they share the load. Of codes, a row: {row, as above, 0} and
/// where it begins in its eight channels.
struct RowOffsets {
  std::uint32_t v[4];
};

/// Pointers are device memory.
struct Work {
  const void* in;
  std::int64_t in_stride;  ///< words; of codes: codes
  std::int64_t n_codes;    ///< of a channel; what lies behind them may be anything
  void* out;               ///< words, or the sums themselves
  std::int64_t out_stride;
  std::int64_t half;       ///< words of a row of the root, multiple of kTileWords
  std::int64_t n_outputs;  ///< sums of the root
  const Tile* tiles;
  const void* inputs;
  const RowOffsets* steps;
  int n_tiles;
  int n_times;   ///< blocks of any tile in this launch
  bool back;     ///< the last first: what the pass before has just written is still in the cache
  int zeros;     ///< where a row of zeros begins in shared memory, behind the inputs, or -1
  int steps_at;  ///< where the steps begin behind these
  int shared_bytes;  ///< of all
  bool last;         ///< writes sums
  bool padded;       ///< sums may be written two at a time, to the end of the second half
};

/// What tiles may have, bytes of shared memory.
struct TileLimits {
  int bytes = 0;              ///< of a tile: inputs, rows of zeros, steps
  int small_beams_bytes = 0;  ///< of one of at most 8 rows, where less is not enough
};

/// One depth of the tree.
struct Pass {
  std::vector<Tile> tiles;
  std::vector<Input> inputs;
  std::vector<CodeInput> code_inputs;
  std::vector<RowOffsets> steps;
  std::int64_t n_rows = 0;
  std::int64_t longest = 0;             ///< words that any tile has beyond `half`
  int input_bytes = 0, step_bytes = 0;  ///< of the largest tile
  bool codes = false;
  bool odd = false;  ///< a tile has an odd number of parts: rows of zeros follow the inputs
};
/// Whether sums of 4 codes fit a byte.
bool quads_fit(int max_code);
/// The codes' first. Throws UnsupportedError where a row does not fit.
std::vector<Pass> tree_passes(const DedisperseConfig& config, const TileLimits& limits);

}  // namespace ryle::search::detail::device_tree
