// SPDX-License-Identifier: BSD-3-Clause
// Host side of the tree on the device: tables and rows in its memory, one launch a pass.
#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/cuda/warpgroup_support.hpp"
#include "ryle/device/to_device.hpp"
#include "ryle/engine/search/cuda/fdmt_launch.cuh"
#include "ryle/engine/search/cuda/make.hpp"
#include "ryle/engine/search/device_memory.hpp"

namespace ryle::search {
namespace detail::device_tree {
namespace {

class CudaTree final : public Dedisperser {
 public:
  CudaTree(Queue& queue, const DedisperseConfig& config)
      : device_(cuda::device_of(queue)),
        quads_(quads_fit(config.max_code)),
        tiles_(config.implementation == "fdmt:cuda:tiles"),
        max_outputs_(config.max_outputs),
        max_delay_(*std::max_element(config.delays.begin(), config.delays.end())) {
    const cuda::DeviceScope scope(device_);
    if (sum_format(config.n_channels, config.max_code) != SumFormat::u16)
      throw UnsupportedError(
          "search implementation \"fdmt\" on CUDA: " + std::to_string(config.n_channels) +
          " channels of codes to " + std::to_string(config.max_code) +
          " need sums of 32 bits; codes to " + std::to_string(65535 / config.n_channels) +
          " would fit 16, and \"cuda\" sums any");
    allow_memory();
    TileLimits limits;
    limits.small_beams_bytes = max_tile_bytes();
    limits.bytes = std::min(limits.small_beams_bytes, paired_tile_bytes(device_));
    if (!tiles_ && cuda::has_warpgroup_products(device_)) {
      n_ring_blocks_ = cuda::attribute_of(device_, cudaDevAttrMultiProcessorCount);
      max_ring_bytes_ = max_ring_bytes();
      limits.bytes = max_ring_bytes_;
    }
    // Blocks read whole tiles, and a little beside.
    static_assert(kTileWords == 256 && kCodeTileWords == 1024);  // as device_memory.cpp has them
    stride_ = device_tree_stride(max_outputs_, max_delay_);
    for (const Pass& pass : tree_passes(config, limits)) {
      Level level;
      level.tiles = to_device(queue, pass.tiles);
      level.inputs = to_device(queue, pass.inputs);
      level.code_inputs = to_device(queue, pass.code_inputs);
      level.steps = to_device(queue, pass.steps);
      level.longest = pass.longest;
      level.zeros = pass.odd ? pass.input_bytes : -1;
      level.steps_at = pass.input_bytes + (pass.odd ? kZeroBytes : 0);
      level.shared_bytes = level.steps_at + pass.step_bytes;
      level.codes = pass.codes;
      levels_.push_back(std::move(level));
      if (levels_.size() > 1) {
        Buffer<std::uint32_t>& rows = levels_[levels_.size() - 2].rows;
        rows = Buffer<std::uint32_t>(n_rows_before_ * stride_, MemorySpace::device);
        // Words that nobody asks for are not made, and some are read beside those that are.
        RYLE_CUDA(cudaMemsetAsync(rows.data(), 0, static_cast<std::size_t>(rows.bytes()),
                                  cuda::stream_of(queue)));
      }
      n_rows_before_ = pass.n_rows;
    }
    queue.synchronize();
  }

  void execute(Queue& queue, const std::uint8_t* codes, std::int64_t code_stride,
               std::int64_t n_outputs, void* sums, std::int64_t sum_stride) override {
    if (n_outputs <= 0) return;
    if (n_outputs > max_outputs_)
      throw ConfigError("dedispersion: " + std::to_string(n_outputs) + " outputs, planned for " +
                        std::to_string(max_outputs_));
    const cuda::DeviceScope scope(device_);
    cuda::require_device_memory(codes, "codes");
    cuda::require_device_memory(sums, "dedispersed sums");
    for (std::size_t k = 0; k < levels_.size(); ++k) {
      const Level& level = levels_[k];
      Work work{};
      work.last = k + 1 == levels_.size();
      work.in = level.codes ? static_cast<const void*>(codes) : levels_[k - 1].rows.data();
      work.in_stride = level.codes ? code_stride : stride_;
      work.n_codes = n_outputs + max_delay_;
      work.out = work.last ? sums : level.rows.data();
      work.out_stride = work.last ? sum_stride : stride_;
      work.half = device_tree_half(n_outputs);
      work.n_outputs = n_outputs;
      work.back = k % 2 != 0;
      work.tiles = level.tiles.data();
      work.inputs =
          level.codes ? static_cast<const void*>(level.code_inputs.data()) : level.inputs.data();
      work.steps = level.steps.data();
      work.n_tiles = static_cast<int>(level.tiles.size());
      work.shared_bytes = level.shared_bytes;
      work.zeros = level.zeros;
      work.steps_at = level.steps_at;
      work.padded = n_outputs == 2 * work.half && sum_stride % 2 == 0 &&
                    reinterpret_cast<std::uintptr_t>(sums) % 4 == 0;
      const cudaStream_t stream = cuda::stream_of(queue);
      if (level.codes) {
        launch_codes(work, quads_, level.longest, stream);
      } else if (n_ring_blocks_ > 0 && level.shared_bytes <= max_ring_bytes_) {
        launch_ring(work, level.longest, n_ring_blocks_, stream);
      } else {
        launch_tiles(work, level.longest, stream);
      }
    }
  }
  std::int64_t max_delay() const override { return max_delay_; }
  std::string_view implementation() const override {
    return tiles_ ? "search/fdmt/cuda/tiles" : "search/fdmt/cuda";
  }

 private:
  struct Level {
    Buffer<Tile> tiles;
    Buffer<Input> inputs;
    Buffer<CodeInput> code_inputs;
    Buffer<RowOffsets> steps;
    std::int64_t longest = 0;
    int zeros = -1, steps_at = 0, shared_bytes = 0;
    bool codes = false;
    Buffer<std::uint32_t> rows;  // what the pass makes; the last one writes to the sums
  };

  int device_;
  bool quads_, tiles_;
  int n_ring_blocks_ = 0, max_ring_bytes_ = 0;
  std::int64_t max_outputs_, max_delay_, stride_ = 0;
  std::int64_t n_rows_before_ = 0;
  std::vector<Level> levels_;
};

}  // namespace
}  // namespace detail::device_tree

std::unique_ptr<Dedisperser> make_cuda_fdmt(Queue& queue, const DedisperseConfig& config) {
  return std::make_unique<detail::device_tree::CudaTree>(queue, config);
}

}  // namespace ryle::search
