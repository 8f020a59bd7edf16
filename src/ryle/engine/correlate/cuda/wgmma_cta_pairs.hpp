// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <vector>

#include "ryle/engine/correlate/cuda/wgmma_layout.hpp"

/// Work of clusters of two thread blocks. A tile below the diagonal joins two groups of 128 inputs;
/// two tiles with a group in common, as rows or as columns, need three operands and not four: each
/// block of a cluster brings half of the common one for both. Sums lie where Layout says.
namespace ryle::correlate::wgmma {

/// Two tiles at the same time, of two channels of which channel[] tells: 0 or 1.
struct CtaPair {
  Tile tile[2];
  int channel[2] = {0, 0};
};

/// What a block of a cluster does. Both blocks of a cluster bring their operands in the same order.
struct CtaPairTask {
  Item item;
  std::int64_t id = 0;        ///< of the item
  bool keeps = true;          ///< false: the other block does the same and keeps it
  bool common_first = false;  ///< the first operand is that of both
  bool columns_first = false;
  bool idle_second = false;   ///< on the diagonal, beside a tile that needs two operands
  int first = 0, second = 0;  ///< groups of 128 inputs; on the diagonal `first` alone
};

struct CtaPairs {
  const CtaPair* cta_pairs = nullptr;  ///< of two channels: of the first, of the second, of both
  int n_of_one = 0;                    ///< within the first channel, as many within the second
  int n_of_both = 0;                   ///< left over, the same tile of both channels

  RYLE_HOST_DEVICE int n_of_two() const { return 2 * n_of_one + n_of_both; }
  RYLE_HOST_DEVICE std::int64_t n(const Layout& l) const {
    return l.n_channels / 2 * std::int64_t{n_of_two()} +
           (l.n_channels % 2 == 1 ? n_of_one + n_of_both : 0);
  }
  /// The first channel of CTA pair d; those of the pairs from d on are not before it.
  RYLE_HOST_DEVICE int first_channel(std::int64_t d) const {
    return static_cast<int>(d / n_of_two() * 2);
  }

  RYLE_HOST_DEVICE CtaPairTask task(const Layout& l, std::int64_t d, int rank) const {
    const int channel = first_channel(d);
    const bool alone = channel + 1 == l.n_channels;  // the last of an odd number
    int k = static_cast<int>(d % n_of_two());
    if (alone && k >= n_of_one) k += n_of_one;
    const CtaPair& cta_pair = cta_pairs[k];
    CtaPairTask t;
    if (channel + cta_pair.channel[rank] >= l.n_channels) {
      rank ^= 1;
      t.keeps = false;
    }
    t.item = {channel + cta_pair.channel[rank], cta_pair.tile[rank]};
    t.id = std::int64_t{t.item.channel} * l.n_tiles + t.item.tile.row * (t.item.tile.row + 1) / 2 +
           t.item.tile.column;
    t.first = t.item.tile.row;
    t.second = t.item.tile.column;
    const Tile& other = cta_pair.tile[rank ^ 1];
    const bool diagonal = t.first == t.second;
    if (cta_pair.channel[0] != cta_pair.channel[1] || (diagonal && other.row == other.column))
      return t;
    t.common_first = true;
    t.idle_second = diagonal;
    if (diagonal) return t;
    t.columns_first = t.second == other.row || t.second == other.column;
    if (!t.columns_first) return t;
    t.first = t.item.tile.column;
    t.second = t.item.tile.row;
    return t;
  }
};

/// Every tile of two channels once. Columns with an odd number of tiles below the diagonal lend the
/// last one to the next such column, which it meets in a row: at most one tile is left over.
inline std::vector<CtaPair> cta_pairs_of(int tile_rows, CtaPairs& counts) {
  if (tile_rows == 2) {  // three tiles of two groups: the caches' rate binds, not the tensor cores
    counts.n_of_one = counts.n_of_both = 1;
    const Tile below{1, 0}, upper{0, 0}, lower{1, 1};
    return {{{below, upper}, {0, 0}}, {{below, upper}, {1, 1}}, {{lower, lower}, {0, 1}}};
  }
  std::vector<CtaPair> one;
  std::vector<Tile> left;
  Tile lent;
  bool has_lent = false;
  for (int c = 0; c < tile_rows; ++c) {
    int last = tile_rows - 1;
    if ((last - c) % 2 == 1) {
      if (has_lent) {  // (c, lent.column): a row of one and the column of the other
        one.push_back({{lent, {last--, c}}, {0, 0}});
      } else if (c + 2 < tile_rows - 1) {
        lent = {c + 2, c};
      } else {
        left.push_back({last--, c});
      }
      has_lent = !has_lent && lent.column == c && lent.row == c + 2;
    }
    Tile before;
    bool has_before = false;
    for (int row = c + 1; row <= last; ++row) {
      if (has_lent && lent.row == row && lent.column == c) continue;
      if (has_before) one.push_back({{before, {row, c}}, {0, 0}});
      before = {row, c};
      has_before = !has_before;
    }
    if (c % 2 == 1) one.push_back({{{c - 1, c - 1}, {c, c}}, {0, 0}});
  }
  if (tile_rows % 2 == 1) left.push_back({tile_rows - 1, tile_rows - 1});
  counts.n_of_one = static_cast<int>(one.size());
  counts.n_of_both = static_cast<int>(left.size());
  std::vector<CtaPair> all = one;
  for (CtaPair cta_pair : one) {
    cta_pair.channel[0] = cta_pair.channel[1] = 1;
    all.push_back(cta_pair);
  }
  for (const Tile& tile : left) all.push_back({{tile, tile}, {0, 1}});
  return all;
}

}  // namespace ryle::correlate::wgmma
