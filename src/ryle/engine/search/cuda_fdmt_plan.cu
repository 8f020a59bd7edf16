// SPDX-License-Identifier: BSD-3-Clause
// Host side of the tree on the device: which rows every node needs, tiles of them, memory.
#include <algorithm>
#include <map>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/cuda/warpgroup_support.hpp"
#include "ryle/engine/search/cuda.hpp"
#include "ryle/engine/search/cuda_fdmt.cuh"
#include "ryle/engine/search/device_memory.hpp"
#include "ryle/engine/search/fdmt_plan.hpp"

namespace ryle::search {
namespace {

using namespace detail;

constexpr int kPairOfBlocks_bytes = 106 * 1024;  // two thread blocks a multiprocessor
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
  std::vector<std::uint32_t> steps;
  std::vector<std::uint16_t> entries;  // of codes
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
        input.time = use.low / per_piece * per_piece;
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
    std::vector<std::vector<std::int32_t>> starts(n);  // [row][part] in shared memory
    for (std::size_t r = 0; r < n; ++r) {
      pass.out_rows.push_back(rows[first + r].second);
      for (std::int64_t p = 0; p < node.n_parts(); ++p) {
        const TreePlace place = tree_place(x_, node, p, rows[first + r].first);
        const Use& use = uses[static_cast<std::size_t>(p)].at(pass.codes ? 0 : place.sweep);
        const MergeInput& input = inputs[static_cast<std::size_t>(use.index)];
        starts[r].push_back(input.offset + place.start - input.time);
        if (pass.codes)
          pass.entries.push_back(static_cast<std::uint16_t>(place.start - input.time));
      }
    }
    add_steps(pass, starts, tile);
    // Copies begin and end at 16 bytes.
    for (; pass.out_rows.size() % 4 != 0;) pass.out_rows.push_back(0);
    std::int32_t n_words = tile.n_rows;
    n_words = (n_words + 3) / 4 * 4 + (tile.n_steps + 3) / 4 * 4;
    tile.n_bytes = 4 * n_words;
    for (const MergeInput& input : inputs) tile.n_bytes += 16 * input.n_pieces;
    pass.inputs.insert(pass.inputs.end(), inputs.begin(), inputs.end());
    pass.shared_bytes = std::max(pass.shared_bytes, bytes);
    pass.tiles.push_back(tile);
    return true;
  }

  /// Where the steps of each group begin, then the steps.
  void add_steps(Pass& pass, const std::vector<std::vector<std::int32_t>>& starts,
                 MergeTile& tile) const {
    const std::size_t of_group = pass.codes ? kCodeRows : kGroupRows;
    const std::size_t n_groups = (starts.size() + of_group - 1) / of_group;
    std::vector<std::uint32_t> heads, steps;
    for (std::size_t row = 0; row < starts.size(); row += of_group) {
      heads.push_back(static_cast<std::uint32_t>(n_groups + steps.size()));
      const std::size_t end = std::min(starts.size(), row + of_group);
      const std::vector<std::vector<std::int32_t>> group(
          starts.begin() + static_cast<std::ptrdiff_t>(row),
          starts.begin() + static_cast<std::ptrdiff_t>(end));
      pass.codes ? add_code_steps(group, steps) : add_sum_steps(group, steps);
      steps.push_back(kEndOfSteps);
    }
    heads.insert(heads.end(), steps.begin(), steps.end());
    tile.first_step = static_cast<std::int32_t>(pass.steps.size());
    tile.n_steps = static_cast<std::int32_t>(heads.size());
    pass.steps.insert(pass.steps.end(), heads.begin(), heads.end());
    while (pass.steps.size() % 4 != 0) pass.steps.push_back(kEndOfSteps);
  }

  /// One step for neighboring rows that take the part from the same words.
  static void add_sum_steps(const std::vector<std::vector<std::int32_t>>& group,
                            std::vector<std::uint32_t>& steps) {
    const auto begin = static_cast<std::ptrdiff_t>(steps.size());
    for (std::size_t p = 0; p < group[0].size(); ++p) {
      for (std::size_t r = 0; r < group.size();) {
        const std::int32_t word = group[r][p] / 2;
        std::size_t split = r;
        while (split < group.size() && group[split][p] == 2 * word) ++split;
        std::size_t end = split;
        while (end < group.size() && group[end][p] == 2 * word + 1) ++end;
        steps.push_back(merge_step(
            merge_kind(static_cast<int>(r), static_cast<int>(split), static_cast<int>(end)),
            static_cast<unsigned>(word)));
        r = end;
      }
    }
    std::sort(steps.begin() + begin, steps.end());
  }

  void add_code_steps(const std::vector<std::vector<std::int32_t>>& group,
                      std::vector<std::uint32_t>& steps) const {
    const std::size_t n = group[0].size();
#if RYLE_MUTANT == 1121
    const auto fit = static_cast<std::size_t>(255 / config_.max_code + 1);
#else
    const auto fit = static_cast<std::size_t>(255 / config_.max_code);  // in a byte
#endif
    auto begin = static_cast<std::ptrdiff_t>(steps.size());
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t r = 0; r < group.size();) {
        const std::int32_t word = group[r][p] / 4;
        std::size_t end = r;
        unsigned shifts = 0;
        for (; end < group.size() && group[end][p] / 4 == word; ++end)
          shifts |= static_cast<unsigned>(group[end][p] % 4) << 2 * end;
        steps.push_back(code_step(code_kind(static_cast<int>(r), static_cast<int>(end)),
                                  static_cast<unsigned>(word), shifts));
        r = end;
      }
      if ((p + 1) % fit != 0 && p + 1 != n) continue;
      std::sort(steps.begin() + begin, steps.end());
      steps.push_back(kWiden);
      begin = static_cast<std::ptrdiff_t>(steps.size());
    }
  }

  const DedisperseConfig& config_;
  std::vector<double> x_;
  std::vector<TreeNode> tree_;
  std::vector<NodeRows> nodes_;
  std::vector<Pass> passes_;
};

template <class T>
Buffer<T> to_device(Queue& queue, const std::vector<T>& values) {
  Buffer<T> buffer(std::max<std::int64_t>(1, static_cast<std::int64_t>(values.size())),
                   MemorySpace::device);
  if (values.empty()) return buffer;
  copy_bytes(queue, buffer.data(), values.data(),
             static_cast<std::int64_t>(values.size() * sizeof(T)));
  queue.synchronize();
  return buffer;
}

class CudaTree final : public Dedisperser {
 public:
  CudaTree(Queue& queue, const DedisperseConfig& config)
      : device_(cuda::device_of(queue)),
        quads_(config.max_code * 4 <= 255),
        tiles_(config.implementation == "fdmt:cuda:tiles"),
        n_channels_(config.n_channels),
        max_outputs_(config.max_outputs),
        max_delay_(*std::max_element(config.delays.begin(), config.delays.end())) {
    const cuda::DeviceScope scope(device_);
    static_assert(kCodeTimes == 1024);  // as device_tree_stride() has it
    if (sum_format(config.n_channels, config.max_code) != SumFormat::u16)
      throw UnsupportedError(
          "search implementation \"fdmt\" on CUDA: " + std::to_string(config.n_channels) +
          " channels of codes to " + std::to_string(config.max_code) +
          " need sums of 32 bits; codes to " + std::to_string(65535 / config.n_channels) +
          " would fit 16, and \"cuda\" sums any");
    allow_merge_memory();
    if (!tiles_ && cuda::has_warpgroup_products(device_)) {
      RYLE_CUDA(cudaDeviceGetAttribute(&n_ring_blocks_, cudaDevAttrMultiProcessorCount, device_));
      most_ring_bytes_ = most_ring_bytes();
    }
    for (Pass& pass : Planner(config).run()) {
      Level level;
      level.tiles = to_device(queue, pass.tiles);
      level.inputs = to_device(queue, pass.inputs);
      level.steps = to_device(queue, pass.steps);
      level.entries = to_device(queue, pass.entries);
      level.out_rows = to_device(queue, pass.out_rows);
      level.longest_extent = pass.longest_extent;
      level.shared_bytes = pass.shared_bytes;
      level.codes = pass.codes;
      // Blocks read whole tiles, and a little beside.
      level.stride = device_tree_stride(config.max_outputs, max_delay_);
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
      work.steps = level.steps.data();
      work.entries = level.codes ? level.entries.data() : nullptr;
      work.out_rows = level.out_rows.data();
      work.n_tiles = static_cast<int>(level.tiles.size());
      work.shared_bytes = level.shared_bytes;
      const bool whole = n_outputs % (level.codes ? kCodeTimes : kMergeTimes) == 0 &&
                         sum_stride % 4 == 0 && reinterpret_cast<std::uintptr_t>(sums) % 8 == 0;
      work.padded = !last || whole;
      if (level.codes) {
        launch_merge_codes(work, quads_, level.longest_extent, cuda::stream_of(queue));
      } else if (n_ring_blocks_ > 0 && level.shared_bytes <= most_ring_bytes_) {
        launch_merge_ring(work, level.longest_extent, n_ring_blocks_, cuda::stream_of(queue));
      } else {
        launch_merge(work, level.longest_extent, cuda::stream_of(queue));
      }
    }
  }
  std::int64_t max_delay() const override { return max_delay_; }
  std::string_view implementation() const override {
    return tiles_ ? "search/fdmt/cuda/tiles" : "search/fdmt/cuda";
  }

 private:
  struct Level {
    Buffer<MergeTile> tiles;
    Buffer<MergeInput> inputs;
    Buffer<std::uint32_t> steps;
    Buffer<std::uint16_t> entries;  // of codes
    Buffer<std::int32_t> out_rows;
    std::int64_t longest_extent = 0, stride = 0;
    int shared_bytes = 0;
    bool codes = false;
    Buffer<std::uint16_t> rows;  // what the pass makes; the last one writes to the sums
  };

  int device_;
  bool quads_, tiles_;
  int n_ring_blocks_ = 0, most_ring_bytes_ = 0;
  std::int64_t n_channels_, max_outputs_, max_delay_;
  std::int64_t n_rows_before_ = 0;
  std::vector<Level> levels_;
};

}  // namespace

std::unique_ptr<Dedisperser> make_cuda_fdmt(Queue& queue, const DedisperseConfig& config) {
  return std::make_unique<CudaTree>(queue, config);
}

}  // namespace ryle::search
