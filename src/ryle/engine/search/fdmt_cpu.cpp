// SPDX-License-Identifier: BSD-3-Clause
// The tree on CPUs. A task is a tile of trials x 1024 outputs: the rows of every node that the tile
// needs are made from codes to sums within the second-level cache. Nothing is kept between tasks or
// calls, so the sums cannot depend on either.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ryle/core/error.hpp"
#include "ryle/device/buffer.hpp"
#include "ryle/engine/search/cpu/tasks.hpp"
#include "ryle/engine/search/fdmt_plan.hpp"
#include "ryle/engine/search/implementations.hpp"

namespace ryle::search::detail {
namespace {

class Tree final : public Dedisperser {
 public:
  Tree(Queue& queue, const DedisperseConfig& config, const CpuKernel& kernel)
      : kernel_(kernel),
        name_(std::string("search/fdmt/") + kernel.name),
        max_code_(config.max_code),
        max_delay_(*std::max_element(config.delays.begin(), config.delays.end())),
        tree_(tree_of(config.n_channels)) {
    const std::vector<double> dispersion = tree_dispersion(config);
    tiles_ = tree_tiles(config, tree_, dispersion);
    error_ = measure(config, dispersion);
    std::int64_t elements = 0;
    for (const TreeTile& tile : tiles_) elements = std::max(elements, tile.scratch_elements);
    // Formats by depth: the largest node decides, so the parts of a node have the same.
    for (const TreeNode& node : tree_) {
      if (static_cast<std::size_t>(node.depth) >= wide_.size()) wide_.push_back(false);
      if (sum_format(node.n_channels, config.max_code) == SumFormat::u32) wide_[node.depth] = true;
    }
    const bool any_wide = wide_.size() > 1 && wide_[1];
    scratch_stride_ = elements * (any_wide ? 2 : 1) + 256;
    scratch_ = Buffer<std::uint16_t>(scratch_stride_ * queue.n_workers());
  }

  void execute(Queue& queue, const std::uint8_t* codes, std::int64_t code_stride,
               std::int64_t n_outputs, void* sums, std::int64_t sum_stride) override {
    for_each_tile(queue, static_cast<std::int64_t>(tiles_.size()), kTreeTimes,
                  {codes, code_stride, 0, n_outputs, sums, sum_stride},
                  [&](std::int64_t slot, std::size_t tile, const OutputWork& work) {
                    run(tiles_[tile], work, scratch_.data() + slot * scratch_stride_);
                  });
  }
  std::int64_t max_delay() const override { return max_delay_; }
  std::string_view implementation() const override { return name_; }
  TrackError track_error() const override { return error_; }

 private:
  bool wide(const TreeNode& node) const { return wide_[node.depth]; }
  static std::uint16_t* place(std::uint16_t* scratch, std::int64_t elements, bool wide) {
    return scratch + (wide ? 2 : 1) * elements;
  }

  MergeFunction function(const TreeNode& node) const {
    if (node.part_node.empty())
      return max_code_ * 4 <= 255 ? kernel_.merge_byte_quads : kernel_.merge_bytes;
    if (!wide(node)) return kernel_.merge_u16;
    return wide(tree_[node.part_node[0]]) ? kernel_.merge_u32 : kernel_.merge_u16_u32;
  }

  void run(const TreeTile& tile, const OutputWork& work, std::uint16_t* scratch) {
    for (const TreeStep& step : tile.steps) {
      const TreeNode& node = tree_[step.node];
      const void* parts[kMaxChildren] = {};
      for (std::int64_t k = 0; k < node.n_parts(); ++k) {
        if (node.part_node.empty()) {
          parts[k] = work.codes + node.bounds[k] * work.code_stride;
        } else {
          const std::int64_t child = node.part_node[k];
          const TreeStep& made = tile.steps[tile.step_of[child]];
          parts[k] = place(scratch, made.out, wide(tree_[child]));
        }
      }
      TreeMerge merge{parts,
                      node.n_parts(),
                      step.offsets.data(),
                      step.rows.data(),
                      static_cast<std::int64_t>(step.rows.size()),
                      work.n,
                      place(scratch, step.out, wide(node))};
      if (step.node == 0) {
        root(tile, step, merge, work);
      } else {
        function(node)(merge);
      }
    }
  }

  void root(const TreeTile& tile, const TreeStep& step, TreeMerge merge, const OutputWork& work) {
    const TreeNode& node = tree_[0];
    const MergeFunction sum = function(node);
    const std::int64_t size_bytes = wide(node) ? 4 : 2;
    merge.n_rows = 1;
    for (std::size_t r = 0; r < tile.trials.size(); ++r) {
      merge.offsets = step.offsets.data() + static_cast<std::int64_t>(r) * node.n_parts();
      merge.rows = step.rows.data() + r;
      merge.to = static_cast<std::byte*>(work.sums) +
                 (tile.trials[r] * work.sum_stride + work.first) * size_bytes;
      sum(merge);
    }
  }

  TrackError measure(const DedisperseConfig& config, const std::vector<double>& dispersion) const {
    TrackError error;
    double squares = 0, count = 0;
    for (std::int64_t i = 0; i < config.n_trials;
         i += std::max<std::int64_t>(1, config.n_trials / 256)) {
      const std::int32_t* wanted = config.delays.data() + i * config.n_channels;
      const auto track = tree_track(tree_, dispersion, wanted[0]);
      for (std::int64_t c = 0; c < config.n_channels; ++c) {
        const double off = track[c] - wanted[c];
        error.max_samples = std::max(error.max_samples, std::abs(off));
        squares += off * off;
        count += 1;
      }
    }
    error.rms_samples = std::sqrt(squares / count);
    return error;
  }

  const CpuKernel& kernel_;
  std::string name_;
  int max_code_;
  std::int64_t max_delay_;
  std::vector<TreeNode> tree_;
  std::vector<bool> wide_;  // [depth]
  std::vector<TreeTile> tiles_;
  TrackError error_;
  std::int64_t scratch_stride_ = 0;
  Buffer<std::uint16_t> scratch_;
};

}  // namespace

std::unique_ptr<Dedisperser> make_fdmt_cpu(Queue& queue, const DedisperseConfig& config,
                                           const CpuKernel& kernel) {
  return std::make_unique<Tree>(queue, config, kernel);
}

}  // namespace ryle::search::detail
