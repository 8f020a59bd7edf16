// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_runtime_api.h>

#include "ryle/engine/search/cuda/fdmt_tables.hpp"

/// Private to the tree on the device.
namespace ryle::search::detail::device_tree {

void allow_memory();
/// Where a tile of this size has room twice, copied while another is worked on (sm_90a).
int max_ring_bytes();
/// In one thread block of the current device, and in each of two of a multiprocessor.
int max_tile_bytes();
int paired_tile_bytes(int device);
/// `longest`: words that any tile has beyond `half`.
void launch_ring(Work work, std::int64_t longest, int n_blocks, cudaStream_t stream);
void launch_tiles(Work work, std::int64_t longest, cudaStream_t stream);
/// quads: sums of 4 codes fit a byte.
void launch_codes(Work work, bool quads, std::int64_t longest, cudaStream_t stream);

}  // namespace ryle::search::detail::device_tree
