// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

/// Private to the tree on the device: what its kernels take. Pointers are device memory.
namespace ryle::search::detail {

inline constexpr int kMergeTimes = 512;  ///< outputs of a thread block
inline constexpr int kCodeTimes = 1024;  ///< of one that adds codes
inline constexpr int kMergeRows = 64;    ///< rows of a thread block: 16 warps x 4
inline constexpr int kMergeThreads = 512;
inline constexpr int kMaxParts = 16;

/// A row of a part, from which a thread block reads.
struct MergeInput {
  std::int32_t row;       ///< of the pass before; of the codes: the channel
  std::int32_t time;      ///< first sample, relative to the block's; multiple of 8 (codes: any)
  std::int32_t offset;    ///< in shared memory, samples, multiple of 16
  std::int32_t n_pieces;  ///< of 16 bytes
};
/// Rows of one node that one thread block makes.
struct MergeTile {
  std::int32_t first_input, n_inputs;
  std::int32_t first_entry;  ///< in `entries`
  std::int32_t n_rows, n_parts;
  std::int32_t first_row;  ///< slot k makes row out_rows[first_row + k]
  std::int32_t extent;     ///< outputs wanted beyond those of the root
  std::int32_t pad;
};
struct MergeWork {
  const void* in;
  std::int64_t in_stride;   ///< samples
  const std::uint8_t* end;  ///< of the codes
  std::uint16_t* out;
  std::int64_t out_stride, n_outputs;
  const MergeTile* tiles;
  const MergeInput* inputs;
  /// Of sums: [slot][1 + part], the number of even starts, then the samples in shared memory that
  /// parts begin at, even ones first. Of codes: [slot][part], samples behind the input's first.
  const std::uint16_t* entries;
  const std::int32_t* out_rows;
  int n_tiles, shared_bytes;
  bool padded;  ///< rows may be written to the end of the block, 4 samples at a time
};
/// A pass of the tree: of sums, or of codes (at most 8 parts; quads: sums of 4 codes fit a byte).
void launch_merge(const MergeWork& work, std::int64_t longest_extent, cudaStream_t stream);
void launch_merge_codes(const MergeWork& work, bool quads, std::int64_t longest_extent,
                        cudaStream_t stream);

}  // namespace ryle::search::detail
