// SPDX-License-Identifier: BSD-3-Clause
// The tree's plan for a device: which rows every node needs and where, tiles of them, and the steps
// of each group of rows.
#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/engine/search/cuda/fdmt_tables.hpp"
#include "ryle/engine/search/fdmt_plan.hpp"

namespace ryle::search::detail::device_tree {
namespace {

constexpr std::uint32_t kNoRow = 0xffffffffu;
constexpr std::size_t kFewRows = 8;
constexpr std::int32_t kZeros = -2;  // of a start: the row of zeros, placed with the whole pass

std::int32_t up(std::int32_t n, std::int32_t step) { return (n + step - 1) / step * step; }

/// A row of a node: where it lies, and which of its words are wanted beside those of the root.
struct NodeRow {
  std::int32_t row = 0, low = 0, high = 0;
};
using NodeRows = std::map<std::int32_t, NodeRow>;  // by sweep

class Planner {
 public:
  Planner(const DedisperseConfig& config, TileLimits limits)
      : config_(config),
        limits_(limits),
        x_(tree_dispersion(config)),
        tree_(tree_of(config.n_channels)) {}

  /// Passes, the codes' first.
  std::vector<Pass> run() {
    nodes_.resize(tree_.size());
    std::int64_t depth = 0;
    for (const auto& node : tree_) depth = std::max(depth, node.depth);
    passes_.resize(depth + 1);
    const std::vector<std::int32_t> rows = tree_rows(config_);
    for (const std::int32_t sweep : rows) nodes_[0].emplace(sweep, NodeRow{});
    for (std::size_t k = 0; k < tree_.size(); ++k) number(k);
    for (std::size_t k = 0; k < tree_.size(); ++k) tile_node(k, rows);
    for (Pass& pass : passes_) place_zeros(pass);
    std::reverse(passes_.begin(), passes_.end());
    return std::move(passes_);
  }

 private:
  /// A row to make: its sweep, and the row it is written to.
  struct Wanted {
    std::int32_t sweep, row;
  };
  Pass& pass_of(const TreeNode& node) { return passes_[node.depth]; }
  NodeRows& rows_of(const TreeNode& node, std::int64_t part) {
    return nodes_[node.part_node[part]];
  }

  void number(std::size_t k) {
    const TreeNode& node = tree_[k];
    Pass& pass = pass_of(node);
    pass.codes = node.part_node.empty();
    for (auto& [sweep, row] : nodes_[k]) {
      row.row = static_cast<std::int32_t>(pass.n_rows++);
      for (std::int64_t p = 0; p < node.n_parts() && !pass.codes; ++p) {
        const TreeOffset place = tree_offset(x_, node, p, sweep);
        const std::int32_t low = row.low + place.start, high = row.high + place.start;
        const auto [part, fresh] = rows_of(node, p).emplace(place.sweep, NodeRow{0, low, high});
        part->second.low = std::min(part->second.low, low);
        part->second.high = std::max(part->second.high, high);
      }
    }
  }

  void tile_node(std::size_t k, const std::vector<std::int32_t>& trial_rows) {
    std::vector<Wanted> rows;
    if (k == 0) {
      for (std::size_t i = 0; i < trial_rows.size(); ++i)
        rows.push_back({trial_rows[i], static_cast<std::int32_t>(i)});
      std::sort(rows.begin(), rows.end(), [](const Wanted& a, const Wanted& b) {
        return std::pair(a.sweep, a.row) < std::pair(b.sweep, b.row);
      });
    } else {
      for (const auto& [sweep, row] : nodes_[k]) rows.push_back({sweep, row.row});
    }
    const bool codes = pass_of(tree_[k]).codes;
    const auto maximum = static_cast<std::size_t>(codes ? kCodeTileRows : kTileRows);
    const auto of_group = static_cast<std::size_t>(codes ? 1 : kGroupRows);
    const auto in_groups = [&](std::size_t n) { return (n + of_group - 1) / of_group * of_group; };
    for (auto next = rows.begin(); next != rows.end();) {
      // Tiles of a node are of about one size, in whole groups.
      const auto left = static_cast<std::size_t>(rows.end() - next);
      const std::size_t n_tiles = (left + maximum - 1) / maximum;
      std::size_t n = std::min(left, in_groups((left + n_tiles - 1) / n_tiles));
      while (!add_tile(k, {next, next + static_cast<std::ptrdiff_t>(n)})) {
        if (n == 1)
          throw UnsupportedError("search implementation \"fdmt\" on CUDA: one row of a node with " +
                                 std::to_string(tree_[k].n_parts()) +
                                 " parts needs more shared memory than there is");
        n = n > 2 * of_group ? in_groups(n) - of_group : (n + 1) / 2;
      }
      next += static_cast<std::ptrdiff_t>(n);
    }
  }

  /// Rows of one part (of codes: the channel) that a tile reads, by sweep (0): where they begin for
  /// its rows, and where they lie in shared memory.
  struct Use {
    std::int32_t low, high, bytes;
  };
  using Uses = std::vector<std::map<std::int32_t, Use>>;

  bool add_tile(std::size_t k, const std::vector<Wanted>& rows) {
    const TreeNode& node = tree_[k];
    Pass& pass = pass_of(node);
    Tile tile{};
    Uses uses = uses_of(node, rows, pass.codes);
    std::vector<Input> inputs;
    std::vector<CodeInput> code_inputs;
    const std::int32_t bytes = pass.codes ? lay_out_codes(node, uses, code_inputs, tile)
                                          : lay_out(node, uses, inputs, tile);
    const std::int32_t n_step_bytes = step_bytes(pass.codes, rows.size(), uses.size());
    if (!fits(pass, rows.size(), bytes, n_step_bytes)) return false;
    tile.first_input =
        static_cast<std::int32_t>(pass.codes ? pass.code_inputs.size() : pass.inputs.size());
    tile.n_inputs = static_cast<std::int32_t>(inputs.size() + code_inputs.size());
    pass.inputs.insert(pass.inputs.end(), inputs.begin(), inputs.end());
    pass.code_inputs.insert(pass.code_inputs.end(), code_inputs.begin(), code_inputs.end());
    pass.input_bytes = std::max(pass.input_bytes, bytes);
    set_range(nodes_[k], rows, pass, tile);
    tile.first_step = static_cast<std::int32_t>(pass.steps.size());
    const Starts starts = starts_of(node, rows, uses, pass);
    pass.codes ? add_code_steps(nodes_[k], pass, rows, starts, tile)
               : add_steps(nodes_[k], pass, rows, starts, tile);
    tile.group_bytes = n_step_bytes / tile.n_groups;
    if (!pass.codes) tile.n_bytes += n_step_bytes;
    pass.step_bytes = std::max(pass.step_bytes, n_step_bytes);
    pass.tiles.push_back(tile);
    return true;
  }

  Uses uses_of(const TreeNode& node, const std::vector<Wanted>& rows, bool codes) const {
    Uses uses(static_cast<std::size_t>(node.n_parts()));
    for (const Wanted& row : rows) {
      for (std::int64_t p = 0; p < node.n_parts(); ++p) {
        const TreeOffset place = tree_offset(x_, node, p, row.sweep);
        const auto [use, fresh] =
            uses[p].emplace(codes ? 0 : place.sweep, Use{place.start, place.start, 0});
        use->second.low = std::min(use->second.low, place.start);
        use->second.high = std::max(use->second.high, place.start);
      }
    }
    return uses;
  }

  /// Rows one behind the other. Returns their bytes.
  std::int32_t lay_out(const TreeNode& node, Uses& uses, std::vector<Input>& inputs, Tile& tile) {
    for (std::size_t p = 0; p < uses.size(); ++p) {
      for (auto& [sweep, use] : uses[p]) {
        use.low = use.low / 4 * 4;
        use.bytes = tile.n_bytes;
        const std::int32_t n_pieces = up(kTileWords + use.high - use.low, 4) / 4;
        inputs.push_back({rows_of(node, static_cast<std::int64_t>(p)).at(sweep).row, use.low,
                          use.bytes, n_pieces});
        tile.n_bytes += 16 * n_pieces;
      }
    }
    return tile.n_bytes;
  }

  /// Words of four codes of each channel, then windows of the first half, then of the second.
  static std::int32_t lay_out_codes(const TreeNode& node, Uses& uses,
                                    std::vector<CodeInput>& inputs, Tile& tile) {
    std::int32_t bytes = 0;
    for (std::size_t p = 0; p < uses.size(); ++p) {
      Use& use = uses[p].begin()->second;
      use.low = use.low / 16 * 16;
      use.bytes = bytes;
      CodeInput input{};
      input.channel = static_cast<std::int32_t>(node.bounds[p]);
      input.time = use.low;
      input.words = bytes;
      input.n_words = up(kCodeTileWords / 2 + use.high - use.low, 4);
      // A piece more for the alignment of codes.
      input.n_pieces = (input.n_words + kCodeTileWords / 2 + 15) / 16 + 1;
      bytes += 4 * input.n_words;
      inputs.push_back(input);
    }
    for (CodeInput& input : inputs) {
      input.offset = bytes + tile.n_bytes;
      tile.n_bytes += 16 * input.n_pieces;
    }
    return bytes + 2 * tile.n_bytes;
  }

  /// Which words of its rows the tile makes.
  static void set_range(const NodeRows& of_node, const std::vector<Wanted>& rows, Pass& pass,
                        Tile& tile) {
    std::int32_t begin = of_node.at(rows[0].sweep).low;
    for (const Wanted& row : rows) {
      begin = std::min(begin, of_node.at(row.sweep).low);
      tile.extent = std::max(tile.extent, of_node.at(row.sweep).high);
    }
    tile.begin = begin / 32 * 32;
    pass.longest = std::max<std::int64_t>(pass.longest, tile.extent - tile.begin);
  }

  /// [row][part] bytes in shared memory, in whole pairs of parts (of codes: eight).
  using Starts = std::vector<std::vector<std::int32_t>>;
  Starts starts_of(const TreeNode& node, const std::vector<Wanted>& rows, const Uses& uses,
                   Pass& pass) const {
    const auto n_parts = static_cast<std::size_t>(node.n_parts());
    const std::size_t full = pass.codes ? kCodeParts : (n_parts + 1) / 2 * 2;
    pass.odd = pass.odd || full > n_parts;
    Starts starts;
    for (const Wanted& row : rows) {
      starts.emplace_back(full, kZeros);
      for (std::size_t p = 0; p < n_parts; ++p) {
        const TreeOffset place = tree_offset(x_, node, static_cast<std::int64_t>(p), row.sweep);
        const Use& use = uses[p].at(pass.codes ? 0 : place.sweep);
        starts.back()[p] = use.bytes + 4 * (place.start - use.low);
      }
    }
    return starts;
  }

  static std::int32_t step_bytes(bool codes, std::size_t n_rows, std::size_t n_parts) {
    const std::size_t n_groups = codes ? n_rows : (n_rows + kGroupRows - 1) / kGroupRows;
    const std::size_t pieces = codes ? 3 : 2 + (n_parts + 1) / 2 * 2;
    return static_cast<std::int32_t>(n_groups * pieces * sizeof(RowOffsets));
  }
  /// Whether a tile fits, beside what is largest in its pass: steps of all tiles begin at one
  /// place.
  bool fits(const Pass& pass, std::size_t n_rows, std::int32_t inputs, std::int32_t steps) const {
    const int largest =
        std::max(pass.input_bytes, inputs) + kZeroBytes + std::max(pass.step_bytes, steps);
    const bool few = n_rows <= kFewRows || pass.input_bytes > limits_.bytes;
    return inputs + kZeroBytes + steps <=
               (n_rows <= kFewRows ? limits_.small_beams_bytes : limits_.bytes) &&
           largest <= (few ? limits_.small_beams_bytes : limits_.bytes);
  }

  static void add_code_steps(const NodeRows& of_node, Pass& pass, const std::vector<Wanted>& rows,
                             const std::vector<std::vector<std::int32_t>>& starts, Tile& tile) {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const auto at = [&](std::size_t p) { return static_cast<std::uint32_t>(starts[r][p]); };
      const NodeRow& row = of_node.at(rows[r].sweep);
      pass.steps.push_back(
          {{static_cast<std::uint32_t>(rows[r].row), static_cast<std::uint32_t>(row.low),
            static_cast<std::uint32_t>(row.high), 0}});
      pass.steps.push_back({{at(0), at(1), at(2), at(3)}});
      pass.steps.push_back({{at(4), at(5), at(6), at(7)}});
    }
    tile.n_groups = static_cast<std::int32_t>(rows.size());
  }

  static void add_steps(const NodeRows& of_node, Pass& pass, const std::vector<Wanted>& rows,
                        const Starts& starts, Tile& tile) {
    for (std::size_t first = 0; first < rows.size(); first += kGroupRows, ++tile.n_groups) {
      // Slots beyond the last row repeat it, unwritten.
      std::array<std::size_t, kGroupRows> slot{};
      RowOffsets head{}, row{};
      head.v[1] = static_cast<std::uint32_t>(of_node.at(rows[first].sweep).low);
      for (std::size_t r = 0; r < kGroupRows; ++r) {
        slot[r] = std::min(first + r, rows.size() - 1);
        row.v[r] =
            first + r < rows.size() ? static_cast<std::uint32_t>(rows[first + r].row) : kNoRow;
        const NodeRow& of_slot = of_node.at(rows[slot[r]].sweep);
        head.v[1] = std::min(head.v[1], static_cast<std::uint32_t>(of_slot.low));
        head.v[2] = std::max(head.v[2], static_cast<std::uint32_t>(of_slot.high));
      }
      std::vector<RowOffsets> pieces;
      const auto starts_in = [&](std::size_t part) {
        RowOffsets piece{};
        for (std::size_t r = 0; r < kGroupRows; ++r)
          piece.v[r] = static_cast<std::uint32_t>(starts[slot[r]][part]);
        return piece;
      };
      std::vector<unsigned> kinds;
      for (std::size_t p = 0; p < starts[0].size(); ++p) kinds.push_back(kind_of(starts_in(p)));
      for (const PartPair& pair : pairs_of(kinds)) {
        head.v[0] += 1u << 4 * pair.kind;
        pieces.push_back(starts_in(pair.one));
        pieces.push_back(starts_in(pair.other));
      }
      pass.steps.insert(pass.steps.end(), {head, row});
      pass.steps.insert(pass.steps.end(), pieces.begin(), pieces.end());
    }
  }
  static unsigned kind_of(const RowOffsets& starts) {
    unsigned kind = 0;
    for (std::size_t r = 0; r + 1 < kGroupRows; ++r)
      if (starts.v[r] != starts.v[r + 1]) kind |= 1u << r;
    return kind;
  }

  struct PartPair {
    unsigned kind;
    std::size_t one, other;
  };
  /// Parts in pairs, by kind. Those of one kind first; what is left shares what both can.
  static std::vector<PartPair> pairs_of(const std::vector<unsigned>& kinds) {
    std::vector<PartPair> pairs;
    std::map<unsigned, std::size_t> alone;
    for (std::size_t p = 0; p < kinds.size(); ++p) {
      const auto found = alone.find(kinds[p]);
      if (found == alone.end()) {
        alone.emplace(kinds[p], p);
        continue;
      }
      pairs.push_back({kinds[p], found->second, p});
      alone.erase(found);
    }
    while (!alone.empty()) {
      const unsigned kind = alone.begin()->first;
      const std::size_t part = alone.begin()->second;
      alone.erase(alone.begin());
      const auto best = std::min_element(alone.begin(), alone.end(), [&](auto& a, auto& b) {
        return loads(kind, a.first) < loads(kind, b.first);
      });
      pairs.push_back({kind | best->first, part, best->second});
      alone.erase(best);
    }
    std::sort(pairs.begin(), pairs.end(),
              [](const PartPair& a, const PartPair& b) { return a.kind < b.kind; });
    return pairs;
  }
  /// More than they would need apart.
  static int loads(unsigned a, unsigned b) {
    return 2 * std::popcount(a | b) - std::popcount(a) - std::popcount(b);
  }

  static void place_zeros(Pass& pass) {
    if (!pass.odd) return;
    for (RowOffsets& piece : pass.steps)
      for (std::uint32_t& v : piece.v)
        if (v == static_cast<std::uint32_t>(kZeros))
          v = static_cast<std::uint32_t>(pass.input_bytes);
  }

  const DedisperseConfig& config_;
  TileLimits limits_;
  std::vector<double> x_;
  std::vector<TreeNode> tree_;
  std::vector<NodeRows> nodes_;
  std::vector<Pass> passes_;
};

}  // namespace

bool quads_fit(int max_code) { return max_code * 4 <= 255; }

std::vector<Pass> tree_passes(const DedisperseConfig& config, const TileLimits& limits) {
  return Planner(config, limits).run();
}

}  // namespace ryle::search::detail::device_tree
