// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/fdmt_plan.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "ryle/core/error.hpp"

namespace ryle::search::detail {
namespace {

constexpr std::int64_t kTileTrials = 512;
constexpr std::int64_t kTileSweep_samples = 512;  // longer rows for every sample of it
constexpr std::int64_t kAlign = 32;               // elements: a row's own part is read aligned
constexpr std::int64_t kSlack = 128;              // elements around a node's rows

std::int64_t up(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }

std::int64_t add_node(std::int64_t first, std::int64_t n, std::int64_t depth,
                      std::vector<TreeNode>& tree) {
  const auto index = static_cast<std::int64_t>(tree.size());
  TreeNode node{first, n, depth, {}, {}};
  std::int64_t part = 1;  // channels of a part
  if (n > 8)
    for (part = 8; (n + part - 1) / part > kMaxChildren;) part *= 8;
  const std::int64_t n_parts = (n + part - 1) / part;
  for (std::int64_t k = 0; k <= n_parts; ++k) node.bounds.push_back(first + n * k / n_parts);
  tree.push_back(node);
  if (part == 1) return index;
  for (std::int64_t k = 0; k < n_parts; ++k) {
    const std::int64_t child =
        add_node(node.bounds[k], node.bounds[k + 1] - node.bounds[k], depth + 1, tree);
    tree[index].part_node.push_back(child);
  }
  return index;
}

/// Needed rows of a node: sweep -> where, relative to the outputs, it is needed.
struct Need {
  std::int32_t low = 0, high = 0;
  std::int32_t index = 0, begin = 0, at = 0;
};
using Needs = std::map<std::int32_t, Need>;

void widen(Needs& needs, std::int32_t sweep, std::int32_t low, std::int32_t high) {
  const auto [entry, fresh] = needs.emplace(sweep, Need{low, high, 0, 0, 0});
  if (fresh) return;
  entry->second.low = std::min(entry->second.low, low);
  entry->second.high = std::max(entry->second.high, high);
}

/// Plans one tile.
class Tiler {
 public:
  Tiler(const std::vector<TreeNode>& tree, const std::vector<double>& dispersion)
      : tree_(tree), dispersion_(dispersion), needs_(tree.size()), sizes_(tree.size(), 0) {}

  TreeTile run(const std::vector<std::int32_t>& rows, std::vector<std::int64_t> trials) {
    TreeTile tile;
    tile.trials = std::move(trials);
    for (const std::int64_t trial : tile.trials) root_.push_back(rows[trial]);
    for (std::size_t node = 0; node < tree_.size(); ++node) pass_down(node);
    for (std::size_t node = 1; node < tree_.size(); ++node) lay_out(node);
    tile.step_of.resize(tree_.size());
    place(0, 0, tile);
    return tile;
  }

 private:
  /// body(sweep, low, high, begin) for the node's rows in order.
  template <class Body>
  void for_rows(std::size_t node, const Body& body) const {
    if (node == 0) {
      for (const std::int32_t sweep : root_) body(sweep, 0, 0, 0);
      return;
    }
    for (const auto& [sweep, need] : needs_[node]) body(sweep, need.low, need.high, need.begin);
  }

  void pass_down(std::size_t node) {
    const TreeNode& n = tree_[node];
    if (n.part_node.empty()) return;
    for_rows(node, [&](std::int32_t sweep, std::int32_t low, std::int32_t high, std::int32_t) {
      for (std::int64_t part = 0; part < n.n_parts(); ++part) {
        const TreeOffset p = tree_offset(dispersion_, n, part, sweep);
        widen(needs_[n.part_node[part]], p.sweep, low + p.start, high + p.start);
      }
    });
  }

  void lay_out(std::size_t node) {
    std::int64_t at = kSlack, index = 0;
    for (auto& [sweep, need] : needs_[node]) {
      need.index = static_cast<std::int32_t>(index++);
      need.begin = static_cast<std::int32_t>(need.low / kAlign * kAlign);
      need.at = static_cast<std::int32_t>(at);
      at += up(kTreeTimes + need.high - need.begin, 64);
    }
    sizes_[node] = at + kSlack;
  }

  /// Scratch is a stack: a node's rows, above them its parts.
  void place(std::size_t node, std::int64_t out, TreeTile& tile) const {
    const TreeNode& n = tree_[node];
    std::int64_t next = out + sizes_[node];
    for (const std::int64_t child : n.part_node) {
      place(static_cast<std::size_t>(child), next, tile);
      next += sizes_[child];
    }
    tile.scratch_elements = std::max(tile.scratch_elements, next);
    TreeStep step;
    step.node = static_cast<std::int64_t>(node);
    step.out = out;
    step.elements = sizes_[node];
    for_rows(node, [&](std::int32_t sweep, std::int32_t, std::int32_t high, std::int32_t begin) {
      step.rows.push_back({node == 0 ? 0 : needs_[node].at(sweep).at,
                           static_cast<std::int32_t>(up(high - begin, 64))});  // whole vectors
      for (std::int64_t part = 0; part < n.n_parts(); ++part) {
        const TreeOffset p = tree_offset(dispersion_, n, part, sweep);
        std::int32_t offset = begin + p.start;
        if (!n.part_node.empty()) {
          const Need& need = needs_[n.part_node[part]].at(p.sweep);
          offset += need.at - need.begin;
        }
        step.offsets.push_back(offset);
      }
    });
    tile.step_of[node] = static_cast<std::int64_t>(tile.steps.size());
    tile.steps.push_back(std::move(step));
  }

  const std::vector<TreeNode>& tree_;
  const std::vector<double>& dispersion_;
  std::vector<std::int32_t> root_;
  std::vector<Needs> needs_;
  std::vector<std::int64_t> sizes_;
};

}  // namespace

std::vector<TreeNode> tree_of(std::int64_t n_channels) {
  std::vector<TreeNode> tree;
  add_node(0, n_channels, 0, tree);
  return tree;
}

TreeOffset tree_offset(const std::vector<double>& x, const TreeNode& node, std::int64_t part,
                       std::int32_t sweep) {
  const auto at = [&](std::int64_t channel) { return x[channel]; };
  const double top = at(node.first_channel + node.n_channels - 1);
  const double span = at(node.first_channel) - top;
  if (!(span > 0)) return {};
  const double low = at(node.bounds[part]) - top;
  const double high = at(node.bounds[part + 1] - 1) - top;
  const auto start = static_cast<std::int32_t>(std::lrint(sweep * (high / span)));
  const auto end = static_cast<std::int32_t>(std::lrint(sweep * (low / span)));
  return {start, end - start};
}

std::vector<double> tree_dispersion(const DedisperseConfig& config) {
  const std::int64_t n = config.n_channels;
  std::vector<double> x(n, 0.0);
  if (!config.dispersion.empty()) {
    const double top = config.dispersion.back(), span = config.dispersion.front() - top;
    for (std::int64_t c = 0; c < n && span > 0; ++c) x[c] = (config.dispersion[c] - top) / span;
  } else {
    double squares = 0;
    for (std::int64_t i = 0; i < config.n_trials; ++i) {
      const auto* delays = config.delays.data() + i * n;
      const double sweep = delays[0];
      squares += sweep * sweep;
      for (std::int64_t c = 0; c < n; ++c) x[c] += sweep * delays[c];
    }
    for (auto& value : x) value = squares > 0 ? value / squares : 0;
    for (std::int64_t c = n - 2; c >= 0; --c)  // roundings
      x[c] = std::max(x[c], x[c + 1]);
  }
  const std::vector<std::int32_t> rows = tree_rows(config);
  for (std::int64_t i = 0; i < config.n_trials;
       i += std::max<std::int64_t>(1, config.n_trials / 64)) {
    for (std::int64_t c = 0; c < n; ++c) {
      const double wanted = rows[i] * x[c];
      const double off = wanted - config.delays[i * n + c];
      if (!(std::abs(off) <= 1.5) || (c > 0 && x[c] > x[c - 1]))
        throw UnsupportedError("search implementation \"fdmt\": trial " + std::to_string(i) +
                               ", channel " + std::to_string(c) + ": the delay of " +
                               std::to_string(config.delays[i * n + c]) +
                               " samples is not that of dispersion (" + std::to_string(wanted) +
                               "); \"cpu\" sums any delays");
    }
  }
  return x;
}

std::vector<std::int32_t> tree_rows(const DedisperseConfig& config) {
  std::vector<std::int32_t> rows;
  for (std::int64_t i = 0; i < config.n_trials; ++i)
    rows.push_back(config.delays[i * config.n_channels]);
  return rows;
}

std::vector<std::int32_t> tree_track(const std::vector<TreeNode>& tree,
                                     const std::vector<double>& dispersion, std::int32_t row) {
  std::vector<std::int32_t> track(dispersion.size(), 0);
  std::vector<TreeOffset> of_node(tree.size());
  of_node[0] = {0, row};
  for (std::size_t k = 0; k < tree.size(); ++k) {
    const TreeNode& node = tree[k];
    for (std::int64_t part = 0; part < node.n_parts(); ++part) {
      TreeOffset p = tree_offset(dispersion, node, part, of_node[k].sweep);
      p.start += of_node[k].start;
      if (node.part_node.empty()) {
        track[node.bounds[part]] = p.start;
      } else {
        of_node[node.part_node[part]] = p;
      }
    }
  }
  return track;
}

std::vector<TreeTile> tree_tiles(const DedisperseConfig& config, const std::vector<TreeNode>& tree,
                                 const std::vector<double>& dispersion) {
  const std::vector<std::int32_t> rows = tree_rows(config);
  const auto row = [&](std::int64_t trial) { return rows[trial]; };
  std::vector<std::int64_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return row(a) < row(b); });
  std::vector<TreeTile> tiles;
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && static_cast<std::int64_t>(end - first) < kTileTrials &&
           row(order[end]) - row(order[first]) <= kTileSweep_samples)
      ++end;
    tiles.push_back(Tiler(tree, dispersion)
                        .run(rows, {order.begin() + static_cast<std::ptrdiff_t>(first),
                                    order.begin() + static_cast<std::ptrdiff_t>(end)}));
    first = end;
  }
  return tiles;
}

}  // namespace ryle::search::detail
