// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

/// Private to the CUDA dedisperser: what its kernels take. Pointers are device memory.
namespace ryle::search::detail {

/// A thread block makes kTileTimes outputs of 16 warps x R trials. It goes through the channels in
/// stages: codes of a few channels ("raws") come to shared memory, the sums of adjacent channels at
/// fixed relative delays ("rows") are made from them, every trial adds one row per group of
/// channels.
inline constexpr int kTileTimes = 1024;
inline constexpr int kTileWarps = 16;
inline constexpr int kRowBytes = 72 * 1024;  ///< of one stage; the first kTileTimes bytes are zero
inline constexpr int kRawBytes = 24 * 1024;
inline constexpr int kMetaBytes = 6 * 1024;
inline constexpr int kMetaSlots = 4;
inline constexpr int kMaxStageChannels = 64;
inline constexpr int kStageShared_bytes =
    2 * (kRowBytes + kRawBytes + 4 * kMaxStageChannels) + kMetaSlots * kMetaBytes;

/// Codes of one channel.
struct RawRow {
  std::int32_t channel;
  std::int32_t start;     ///< delay of the first code
  std::int32_t offset;    ///< bytes in the stage's raws, multiple of 16
  std::int32_t n_pieces;  ///< of 16 bytes
};
/// What a warp makes at a time: words [word, word + kUnitWords) of a row, the sum of 1, 2 or 4
/// channels. Rows have 4 copies: copy s begins s samples later, so that a 32-bit load finds any
/// start.
struct RowUnit {
  std::uint16_t offset;   ///< of the row, words in the stage's rows
  std::uint16_t n_words;  ///< of a copy
  std::uint16_t word;
  std::uint16_t n_channels;
  struct {
    std::uint16_t raw, delta;  ///< index of the raw; samples behind its start
  } parts[4];
};
inline constexpr int kUnitSteps = 5;
inline constexpr int kUnitWords = 31 * kUnitSteps;
/// Head of the description of a stage, followed by raws, rows, units and the pair table
/// [pair][warp] [R rounded up to 4]: two word offsets into the rows, for two groups.
struct StageHead {
  std::int32_t n_raws, n_units, n_pairs, flush;  ///< flush: empty the 16-bit sums before
  std::int32_t units_at, pairs_at, pad[2];       ///< bytes from the head
};
struct TileHead {
  std::int32_t first_stage, n_stages;  ///< stage k: description at stage_at[k]
  std::int32_t first_trial, n_trials;
};

struct SharedWork {
  const std::uint8_t* codes;
  const std::uint8_t* end;  ///< of what may be read
  std::int64_t code_stride;
  std::int64_t n_outputs;
  void* sums;
  std::int64_t sum_stride;
  const TileHead* tiles;
  const std::int32_t* stage_at;  ///< [stage] offset in `stages`, bytes, multiple of 16
  const std::uint8_t* stages;
  int n_tiles;
  bool wide;  ///< 32-bit sums
};
/// R of 1, 3, 5.
void launch_shared(int trials_per_warp, const SharedWork& work, cudaStream_t stream);

struct DirectWork {
  const std::uint8_t* codes;
  std::int64_t code_stride, n_outputs;
  void* sums;
  std::int64_t sum_stride;
  const std::int32_t* delays;  ///< [trial][channel]
  int first_trial, n_trials, n_channels;
  bool wide;
};
void launch_direct(const DirectWork& work, cudaStream_t stream);

}  // namespace ryle::search::detail
