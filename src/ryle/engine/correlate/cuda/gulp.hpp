// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>

namespace ryle::correlate::detail {

/// Blocks [first_block, first_block + n_blocks) of a gulp of planar blocks.
struct CudaGulp {
  const std::byte* data = nullptr;
  std::int64_t channel_stride_bytes = 0;
  std::int64_t block_stride_bytes = 0;
  std::int64_t input_stride_bytes = 0;
  int n_inputs = 0;
  int n_channels = 0;
  int first_block = 0;
  int n_blocks = 0;
};

}  // namespace ryle::correlate::detail
