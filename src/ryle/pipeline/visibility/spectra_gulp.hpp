// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/core/blocks.hpp"
#include "ryle/pipeline/visibility/device_blocks.hpp"

namespace ryle::pipeline {

/// A gulp of channelized voltages in host memory; meaning of the members as in image::FieldInput.
struct SpectraGulp {
  ConstBlockView blocks;
  std::int64_t n_spectra = 0;
  const std::uint64_t* valid = nullptr;
  std::int64_t valid_words = 0;
  std::int64_t valid_channel_stride_words = 0;
  /// The same blocks for engines on a device; nullptr: each node brings them for itself.
  DeviceBlocks* device = nullptr;
};

/// Where the engines of one node read the blocks of a gulp: those that all nodes share, else `own`.
inline ConstBlockView blocks_for(Queue& queue, const SpectraGulp& gulp, DeviceBlocks& own) {
  if (gulp.device != nullptr) return gulp.device->on(queue);
  own.renew(gulp.blocks);
  return own.on(queue);
}

}  // namespace ryle::pipeline
