// SPDX-License-Identifier: BSD-3-Clause
// Host side of the tree on the device: which rows every node needs, tiles of them, memory.
#include <algorithm>
#include <map>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/search/cuda.hpp"
#include "ryle/engine/search/cuda_fdmt.cuh"
#include "ryle/engine/search/fdmt_plan.hpp"

namespace ryle::search {
namespace {

using namespace detail;

constexpr int kPairOfBlocks_bytes = 110 * 1024;  // two thread blocks a multiprocessor
constexpr int kOneBlock_bytes = 220 * 1024;

/// Rows of a node: sweep -> row of its pass. `extent`: samples wanted beyond the root's outputs.
struct NodeRows {
  std::map<std::int32_t, std::int32_t> row;
  std::int32_t extent = 0;
};

/// One depth of the tree.
struct Pass {
  std::vector<MergeTile> tiles;
  std::vector<MergeInput> inputs;
  std::vector<std::uint16_t> entries;
  std::vector<std::int32_t> out_rows;
  std::int64_t n_rows = 0, longest_extent = 0;
  int shared_bytes = 0;
  bool codes = false;
};

class Planner {
 public:
  explicit Planner(const DedisperseConfig& config)
      : config_(config), x_(tree_dispersion(config)), tree_(tree_of(config.n_channels)) {}

  /// Passes, the codes' first.
  std::vector<Pass> run() {
    nodes_.resize(tree_.size());
    std::int64_t depth = 0;
    for (const auto& node : tree_) depth = std::max(depth, node.depth);
    passes_.resize(static_cast<std::size_t>(depth + 1));
    const std::vector<std::int32_t> rows = tree_rows(config_);
    for (const std::int32_t sweep : rows) nodes_[0].row.emplace(sweep, 0);
    for (std::size_t k = 0; k < tree_.size(); ++k) number(k);
    for (std::size_t k = 0; k < tree_.size(); ++k) tile_node(k, rows);
    std::reverse(passes_.begin(), passes_.end());
    return std::move(passes_);
  }

 private:
  Pass& pass_of(const TreeNode& node) { return passes_[static_cast<std::size_t>(node.depth)]; }

  void number(std::size_t k) {
    const TreeNode& node = tree_[k];
    Pass& pass = pass_of(node);
    pass.codes = node.part_node.empty();
    pass.longest_extent = std::max<std::int64_t>(pass.longest_extent, nodes_[k].extent);
    for (auto& [sweep, row] : nodes_[k].row) {
      row = static_cast<std::int32_t>(pass.n_rows++);
      for (std::int64_t p = 0; p < node.n_parts() && !pass.codes; ++p) {
        const TreePlace place = tree_place(x_, node, p, sweep);
        NodeRows& part =
            nodes_[static_cast<std::size_t>(node.part_node[static_cast<std::size_t>(p)])];
        part.row.emplace(place.sweep, 0);
        part.extent = std::max(part.extent, nodes_[k].extent + place.start);
      }
    }
  }

  void tile_node(std::size_t k, const std::vector<std::int32_t>& trial_rows) {
    std::vector<std::pair<std::int32_t, std::int32_t>> rows;  // sweep, row written to
    if (k == 0) {
      for (std::size_t i = 0; i < trial_rows.size(); ++i)
        rows.emplace_back(trial_rows[i], static_cast<std::int32_t>(i));
      std::sort(rows.begin(), rows.end());
    } else {
      rows.assign(nodes_[k].row.begin(), nodes_[k].row.end());
    }
    for (std::size_t first = 0; first < rows.size();) {
      std::size_t n = std::min<std::size_t>(kMergeRows, rows.size() - first);
      while (!add_tile(k, rows, first, n, n > 8 ? kPairOfBlocks_bytes : kOneBlock_bytes)) {
        if (n == 1)
          throw UnsupportedError("search implementation \"fdmt\" on CUDA: one row of a node with " +
                                 std::to_string(tree_[k].n_parts()) +
                                 " parts needs more shared memory than there is");
        n = (n + 1) / 2;
      }
      first += n;
    }
  }

  bool add_tile(std::size_t k, const std::vector<std::pair<std::int32_t, std::int32_t>>& rows,
                std::size_t first, std::size_t n, int most_bytes) {
    const TreeNode& node = tree_[k];
    Pass& pass = pass_of(node);
    struct Use {
      std::int32_t low, high, index;
    };
    std::vector<std::map<std::int32_t, Use>> uses(static_cast<std::size_t>(node.n_parts()));
    for (std::size_t r = first; r < first + n; ++r) {
      for (std::int64_t p = 0; p < node.n_parts(); ++p) {
        const TreePlace place = tree_place(x_, node, p, rows[r].first);
        auto& of_part = uses[static_cast<std::size_t>(p)];
        const auto [entry, fresh] =
            of_part.emplace(pass.codes ? 0 : place.sweep, Use{place.start, place.start, 0});
        entry->second.low = std::min(entry->second.low, place.start);
        entry->second.high = std::max(entry->second.high, place.start);
      }
    }
    std::vector<MergeInput> inputs;
    const std::int32_t per_piece = pass.codes ? 16 : 8;
    std::int32_t samples = 0;
    for (std::size_t p = 0; p < uses.size(); ++p) {
      for (auto& [sweep, use] : uses[p]) {
        use.index = static_cast<std::int32_t>(inputs.size());
        MergeInput input{};
        input.row = pass.codes ? static_cast<std::int32_t>(node.bounds[p])
                               : nodes_[static_cast<std::size_t>(node.part_node[p])].row.at(sweep);
        input.time = pass.codes ? use.low : use.low / 8 * 8;
        input.offset = samples;
        // A piece more for the words beside, another for the alignment of codes.
        input.n_pieces =
            ((pass.codes ? kCodeTimes : kMergeTimes) + use.high - input.time + per_piece - 1) /
                per_piece +
            1 + (pass.codes ? 1 : 0);
        samples += (input.n_pieces * per_piece + 15) / 16 * 16;
        inputs.push_back(input);
      }
    }
    const int bytes = samples * (pass.codes ? 1 : 2);
    if (bytes > most_bytes || samples > 65000) return false;
    MergeTile tile{};
    tile.first_input = static_cast<std::int32_t>(pass.inputs.size());
    tile.n_inputs = static_cast<std::int32_t>(inputs.size());
    tile.first_entry = static_cast<std::int32_t>(pass.entries.size());
    tile.n_rows = static_cast<std::int32_t>(n);
    tile.n_parts = static_cast<std::int32_t>(node.n_parts());
    tile.first_row = static_cast<std::int32_t>(pass.out_rows.size());
    tile.extent = nodes_[k].extent;
    for (std::size_t r = first; r < first + n; ++r) {
      pass.out_rows.push_back(rows[r].second);
      std::vector<std::uint16_t> starts;
      for (std::int64_t p = 0; p < node.n_parts(); ++p) {
        const TreePlace place = tree_place(x_, node, p, rows[r].first);
        const Use& use = uses[static_cast<std::size_t>(p)].at(pass.codes ? 0 : place.sweep);
        const MergeInput& input = inputs[static_cast<std::size_t>(use.index)];
        starts.push_back(static_cast<std::uint16_t>(
            pass.codes ? place.start - input.time : input.offset + place.start - input.time));
      }
      if (!pass.codes) {
        const auto odd = std::stable_partition(starts.begin(), starts.end(),
                                               [](std::uint16_t start) { return start % 2 == 0; });
        pass.entries.push_back(static_cast<std::uint16_t>(odd - starts.begin()));
      }
      pass.entries.insert(pass.entries.end(), starts.begin(), starts.end());
    }
    pass.inputs.insert(pass.inputs.end(), inputs.begin(), inputs.end());
    pass.shared_bytes = std::max(pass.shared_bytes, bytes);
    pass.tiles.push_back(tile);
    return true;
  }

  const DedisperseConfig& config_;
  std::vector<double> x_;
  std::vector<TreeNode> tree_;
  std::vector<NodeRows> nodes_;
  std::vector<Pass> passes_;
};

template <class T>
Buffer<T> to_device(Queue& queue, const std::vector<T>& values) {
  Buffer<T> buffer(static_cast<std::int64_t>(values.size()), MemorySpace::device);
  copy_bytes(queue, buffer.data(), values.data(), buffer.bytes());
  queue.synchronize();
  return buffer;
}

class CudaTree final : public Dedisperser {
 public:
  CudaTree(Queue& queue, const DedisperseConfig& config)
      : device_(cuda::device_of(queue)),
        quads_(config.max_code * 4 <= 255),
        n_channels_(config.n_channels),
        max_outputs_(config.max_outputs),
        max_delay_(*std::max_element(config.delays.begin(), config.delays.end())) {
    const cuda::DeviceScope scope(device_);
    if (sum_format(config.n_channels, config.max_code) != SumFormat::u16)
      throw UnsupportedError(
          "search implementation \"fdmt\" on CUDA: " + std::to_string(config.n_channels) +
          " channels of codes to " + std::to_string(config.max_code) +
          " need sums of 32 bits; codes to " + std::to_string(65535 / config.n_channels) +
          " would fit 16, and \"cuda\" sums any");
    for (Pass& pass : Planner(config).run()) {
      Level level;
      level.tiles = to_device(queue, pass.tiles);
      level.inputs = to_device(queue, pass.inputs);
      level.entries = to_device(queue, pass.entries);
      level.out_rows = to_device(queue, pass.out_rows);
      level.longest_extent = pass.longest_extent;
      level.shared_bytes = pass.shared_bytes;
      level.codes = pass.codes;
      // Blocks read whole tiles, and a little beside.
      level.stride = (config.max_outputs + max_delay_ + 2 * kCodeTimes + 63) / 64 * 64;
      levels_.push_back(std::move(level));
      if (levels_.size() > 1) {
        Level& before = levels_[levels_.size() - 2];
        before.rows = Buffer<std::uint16_t>(n_rows_before_ * before.stride, MemorySpace::device);
      }
      n_rows_before_ = pass.n_rows;
    }
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
      const bool last = k + 1 == levels_.size();
      MergeWork work{};
      work.in = level.codes ? static_cast<const void*>(codes) : levels_[k - 1].rows.data();
      work.in_stride = level.codes ? code_stride : levels_[k - 1].stride;
      work.end = codes + (n_channels_ - 1) * code_stride + n_outputs + max_delay_ + kReadAhead;
      work.out = last ? static_cast<std::uint16_t*>(sums) : level.rows.data();
      work.out_stride = last ? sum_stride : level.stride;
      work.n_outputs = n_outputs;
      work.tiles = level.tiles.data();
      work.inputs = level.inputs.data();
      work.entries = level.entries.data();
      work.out_rows = level.out_rows.data();
      work.n_tiles = static_cast<int>(level.tiles.size());
      work.shared_bytes = level.shared_bytes;
      const bool whole = n_outputs % kCodeTimes == 0 && sum_stride % 4 == 0 &&
                         reinterpret_cast<std::uintptr_t>(sums) % 8 == 0;
      work.padded = !last || whole;
      if (level.codes) {
        launch_merge_codes(work, quads_, level.longest_extent, cuda::stream_of(queue));
      } else {
        launch_merge(work, level.longest_extent, cuda::stream_of(queue));
      }
    }
  }
  std::int64_t max_delay() const override { return max_delay_; }
  std::string_view implementation() const override { return "search/fdmt/cuda"; }

 private:
  struct Level {
    Buffer<MergeTile> tiles;
    Buffer<MergeInput> inputs;
    Buffer<std::uint16_t> entries;
    Buffer<std::int32_t> out_rows;
    std::int64_t longest_extent = 0, stride = 0;
    int shared_bytes = 0;
    bool codes = false;
    Buffer<std::uint16_t> rows;  // what the pass makes; the last one writes to the sums
  };

  int device_;
  bool quads_;
  std::int64_t n_channels_, max_outputs_, max_delay_;
  std::int64_t n_rows_before_ = 0;
  std::vector<Level> levels_;
};

}  // namespace

std::unique_ptr<Dedisperser> make_cuda_fdmt(Queue& queue, const DedisperseConfig& config) {
  return std::make_unique<CudaTree>(queue, config);
}

}  // namespace ryle::search
