// SPDX-License-Identifier: BSD-3-Clause
#include "bench/levels/levels.hpp"

#include <string_view>

#include "bench/levels/launch.cuh"
#include "ryle/core/baseline.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/cuda/warpgroup_support.hpp"

namespace ryle::correlate::levels {
namespace {

bool runs_on(const Level& level, int device) {
  return std::string_view(level.name) != "wgmma" || cuda::has_warpgroup_products(device);
}

Gulp gulp_of(const ConstBlockView& blocks) {
  if (blocks.format != SampleFormat::ci8) {
    throw UnsupportedError("the levels correlate ci8 blocks, not " +
                           std::string(name(blocks.format)));
  }
  if (blocks.n_blocks > kMaxSpectra / 64) {
    throw ConfigError("levels: " + std::to_string(blocks.n_blocks * 64) +
                      " spectra at once; an int32 holds " + std::to_string(kMaxSpectra));
  }
  // 65 535 blocks along y are channels; those along x, at most the squares of hybrid, fit 31 bits.
  if (blocks.n_channels > 65'535 || blocks.n_inputs > 46'340) {
    throw ConfigError("levels: " + std::to_string(blocks.n_channels) + " channels x " +
                      std::to_string(blocks.n_inputs) +
                      " inputs are too many for one launch (65535 x 46340)");
  }
  return {blocks.data,
          blocks.channel_stride_bytes,
          blocks.block_stride_bytes,
          blocks.input_stride_bytes,
          static_cast<int>(blocks.n_inputs),
          static_cast<int>(blocks.n_channels),
          static_cast<int>(blocks.n_blocks)};
}

}  // namespace

std::vector<std::string> level_names(Queue& queue) {
  std::vector<std::string> names;
  for (const Level& level : kLevels) {
    if (runs_on(level, cuda::device_of(queue))) names.emplace_back(level.name);
  }
  return names;
}

void correlate_level(Queue& queue, const std::string& name, const ConstBlockView& blocks,
                     std::int32_t* sums) {
  const cuda::DeviceScope scope(cuda::device_of(queue));
  cuda::require_device_memory(blocks.data, "blocks of a level");
  const Gulp gulp = gulp_of(blocks);
  for (const Level& level : kLevels) {
    if (level.name != name || !runs_on(level, cuda::device_of(queue))) continue;
    const Launch launch = level.launch(gulp);
    if (launch.dynamic_shared_bytes > 0) {
      RYLE_CUDA(cudaFuncSetAttribute(launch.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     launch.dynamic_shared_bytes));
    }
    launch
        .kernel<<<dim3(launch.blocks_x, launch.blocks_y), dim3(launch.threads_x, launch.threads_y),
                  launch.dynamic_shared_bytes, cuda::stream_of(queue)>>>(
            gulp, reinterpret_cast<int2*>(sums));
    RYLE_CUDA_LAUNCHED("a level");
    return;
  }
  std::string known;
  for (const std::string& one : level_names(queue)) known += " " + one;
  throw ConfigError("no level \"" + name + "\" on this device; there are:" + known);
}

}  // namespace ryle::correlate::levels
