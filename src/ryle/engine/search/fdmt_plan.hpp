// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/search/cpu/kernel.hpp"
#include "ryle/engine/search/search.hpp"

/// The tree of approximate sums (fast dispersion measure transform; Zackay and Ofek 2017), with up
/// to 16 parts a node instead of 2: fewer roundings on the way, and passes that stay in the cache.
/// @eq A[node, s][t] = sum over parts p of A[p, e_p - b_p][t + b_p], b_p = rne(s f(first of p)),
/// e_p = rne(s f(last of p)), f = fraction of the node's nu^-2 span from its highest channel
namespace ryle::search::detail {

/// A contiguous run of channels. Parts: nodes, or the channels themselves (part_node empty).
struct TreeNode {
  std::int64_t first_channel = 0, n_channels = 0;
  std::int64_t depth = 0;
  std::vector<std::int64_t> bounds;  ///< n_parts + 1 channels
  std::vector<std::int64_t> part_node;
  std::int64_t n_parts() const { return static_cast<std::int64_t>(bounds.size()) - 1; }
};

/// Root first, each node before its parts. Parts have 8, 64, 512 ... channels.
std::vector<TreeNode> tree_of(std::int64_t n_channels);

/// Where a row of a node has a part: samples after its own start, and the part's own sweep.
struct TreeOffset {
  std::int32_t start = 0, sweep = 0;
};
TreeOffset tree_offset(const std::vector<double>& dispersion, const TreeNode& node,
                       std::int64_t part, std::int32_t sweep);

/// nu^-2 above the highest channel, in units of the lowest channel's: config.dispersion, or what
/// fits the delays. Throws UnsupportedError where the delays are no dispersion.
std::vector<double> tree_dispersion(const DedisperseConfig& config);

/// Row of every trial: the delay of its lowest channel, the nearest one-sample row.
std::vector<std::int32_t> tree_rows(const DedisperseConfig& config);

/// Delays a row really has. @shape [channel]
std::vector<std::int32_t> tree_track(const std::vector<TreeNode>& tree,
                                     const std::vector<double>& dispersion, std::int32_t row);

/// Rows that a tile of trials needs in one node, and how they are made.
struct TreeStep {
  std::int64_t node = 0;
  std::vector<TreeRow> rows;
  std::vector<std::int32_t> offsets;  // [row][part], elements
  std::int64_t out = 0;               // elements into scratch; the root writes to the sums
  std::int64_t elements = 0;
};

/// Trials whose rows lie close together, worked through for kTreeTimes outputs at a time.
struct TreeTile {
  std::vector<std::int64_t> trials;   // of the root's rows
  std::vector<TreeStep> steps;        // parts before the nodes made of them, the root last
  std::vector<std::int64_t> step_of;  // [node]
  std::int64_t scratch_elements = 0;
};
inline constexpr std::int64_t kTreeTimes = 1024;
std::vector<TreeTile> tree_tiles(const DedisperseConfig& config, const std::vector<TreeNode>& tree,
                                 const std::vector<double>& dispersion);

}  // namespace ryle::search::detail
