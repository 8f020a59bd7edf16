// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

/// Private to the tree on the device: what its kernels take. Pointers are device memory.
namespace ryle::search::detail {

inline constexpr int kMergeTimes = 512;  ///< outputs of a thread block
inline constexpr int kCodeTimes = 1024;  ///< of one that adds codes
inline constexpr int kMergeRows = 64;    ///< rows of a thread block
inline constexpr int kMergeThreads = 512;
inline constexpr int kMergeBlocks = 2;  ///< of a multiprocessor
inline constexpr int kMaxParts = 16;
inline constexpr int kGroupRows = 2;  ///< rows that a warp makes together
inline constexpr int kCodeRows = 4;   ///< the same of codes
inline constexpr int kMaxSteps = kMergeRows * (kMaxParts + 2);

/// A row of a part, from which a thread block reads.
struct MergeInput {
  std::int32_t row;       ///< of the pass before; of the codes: the channel
  std::int32_t time;      ///< first sample, relative to the block's; multiple of 8 (codes: of 16)
  std::int32_t offset;    ///< in shared memory, samples, multiple of 16
  std::int32_t n_pieces;  ///< of 16 bytes
};
/// Rows of one node that one thread block makes.
struct MergeTile {
  std::int32_t first_input, n_inputs;
  std::int32_t first_step, n_steps;  ///< in `steps`
  std::int32_t first_entry;          ///< in `entries`
  std::int32_t n_rows, n_parts;
  std::int32_t first_row;  ///< slot k makes row out_rows[first_row + k]
  std::int32_t extent;     ///< outputs wanted beyond those of the root
  std::int32_t n_bytes;    ///< of inputs, steps and rows
  std::int32_t unused[2];
};
static_assert(sizeof(MergeTile) % 16 == 0);

/// Rows [first, end) of a group; those before `split` have a part at an even start, the others half
/// a word later.
struct StepRows {
  int first, split, end;
};
/// A step is one load of a warp and the rows of its group it is added to. Neighboring rows mostly
/// take a part from the same words, so that they share loads: 24 instead of 32 for 2 rows of 16
/// parts. Steps of a group are sorted by kind.
__host__ __device__ constexpr StepRows merge_rows(int kind) {
  for (int f = 0; f < kGroupRows; ++f)
    for (int e = f + 1; e <= kGroupRows; ++e)
      for (int s = f; s <= e; ++s, --kind)
        if (kind == 0) return {f, s, e};
  return {};
}
constexpr unsigned merge_kind(int first, int split, int end) {
  unsigned kind = 0;
  for (int f = 0; f < kGroupRows; ++f)
    for (int e = f + 1; e <= kGroupRows; ++e)
      for (int s = f; s <= e; ++s, ++kind)
        if (f == first && s == split && e == end) return kind;
  return kind;
}
inline constexpr int kMergeKinds = static_cast<int>(merge_kind(-1, -1, -1));
__host__ __device__ constexpr unsigned merge_step(unsigned kind, unsigned word) {
  return kind << 17 | word << 2;
}
inline constexpr unsigned kStepBytes = 0x1ffff;  ///< of a step: bytes from the first input
/// The same of codes: word of 4 codes in shared memory, and how many codes later each row begins.
__host__ __device__ constexpr StepRows code_rows(int kind) {
  for (int f = 0; f < kCodeRows; ++f)
    for (int e = f + 1; e <= kCodeRows; ++e, --kind)
      if (kind == 0) return {f, f, e};
  return {};
}
constexpr unsigned code_kind(int first, int end) {
  unsigned kind = 0;
  for (int f = 0; f < kCodeRows; ++f)
    for (int e = f + 1; e <= kCodeRows; ++e, ++kind)
      if (f == first && e == end) return kind;
  return kind;
}
inline constexpr int kCodeKinds = static_cast<int>(code_kind(-1, -1));
constexpr unsigned code_step(unsigned kind, unsigned word, unsigned shifts) {
  return kind << 24 | shifts << 16 | word;
}
/// Behind channels whose sum fits a byte, and behind all.
inline constexpr unsigned kWiden = 0xfffffffeu, kEndOfSteps = 0xffffffffu;

struct MergeWork {
  const void* in;
  std::int64_t in_stride;   ///< samples
  const std::uint8_t* end;  ///< of the codes
  std::uint16_t* out;
  std::int64_t out_stride, n_outputs;
  const MergeTile* tiles;
  const MergeInput* inputs;
  /// Of a tile: where the steps of each group begin, their end, then the steps.
  const std::uint32_t* steps;
  /// Of codes that begin anywhere in memory: [slot][part], samples behind the input's first.
  const std::uint16_t* entries;
  const std::int32_t* out_rows;
  int n_tiles, shared_bytes;
  bool padded;  ///< rows may be written to the end of the block, 4 samples at a time
};
/// Lets the kernels take all shared memory that a thread block may have. Of the current device, for
/// all plans: the limit belongs to the kernel, not to a launch, so no plan sets its own, which
/// would be that of another thread's launch, too.
void allow_merge_memory();
/// Where a tile of this size has room twice, copied while another is worked on (sm_90).
int most_ring_bytes();
void launch_merge_ring(MergeWork work, std::int64_t longest_extent, int n_blocks,
                       cudaStream_t stream);
/// A pass of the tree: of sums, or of codes (at most 8 parts; quads: sums of 4 codes fit a byte).
void launch_merge(const MergeWork& work, std::int64_t longest_extent, cudaStream_t stream);
void launch_merge_codes(const MergeWork& work, bool quads, std::int64_t longest_extent,
                        cudaStream_t stream);

}  // namespace ryle::search::detail
