// SPDX-License-Identifier: BSD-3-Clause
// Work of clusters of two thread blocks: every tile once, and both blocks bring alike.
#include <gtest/gtest.h>

#include <vector>

#include "ryle/engine/correlate/cuda/wgmma_cta_pairs.hpp"

namespace ryle::correlate::test {
namespace {

using namespace wgmma;

struct Work {
  Layout layout;
  std::vector<CtaPair> list;
  CtaPairs cta_pairs;
  Work(int tile_rows, int n_channels) : layout(layout_of(tile_rows * kTile - 5, n_channels)) {
    list = cta_pairs_of(tile_rows, cta_pairs);
    cta_pairs.cta_pairs = list.data();
  }
};

TEST(WgmmaCtaPairs, EveryTileOfEveryChannelIsKeptOnce) {
  for (int tile_rows = 1; tile_rows <= 19; ++tile_rows) {
    for (const int n_channels : {1, 2, 3, 4}) {
      const Work w(tile_rows, n_channels);
      std::vector<int> kept(static_cast<std::size_t>(w.layout.n_items));
      for (std::int64_t d = 0; d < w.cta_pairs.n(w.layout); ++d) {
        for (const int rank : {0, 1}) {
          const CtaPairTask t = w.cta_pairs.task(w.layout, d, rank);
          const Item item = w.layout.item(t.id);
          ASSERT_EQ(item.channel, t.item.channel);
          ASSERT_EQ(item.tile.row, t.item.tile.row);
          ASSERT_EQ(item.tile.column, t.item.tile.column);
          ASSERT_EQ(t.columns_first ? t.first : t.second, item.tile.column);
          ASSERT_EQ(t.columns_first ? t.second : t.first, item.tile.row);
          ASSERT_LE(w.cta_pairs.first_channel(d), item.channel);
          if (t.keeps) ++kept[static_cast<std::size_t>(t.id)];
        }
      }
      for (const int n : kept) ASSERT_EQ(n, 1) << tile_rows << " rows, " << n_channels;
    }
  }
}

// A block waits for halves of its first operand from the other one: both must take as many operands
// a block, and the one in common must be the same, at the same time.
TEST(WgmmaCtaPairs, BothBlocksBringAlike) {
  for (int tile_rows = 1; tile_rows <= 19; ++tile_rows) {
    const Work w(tile_rows, 3);
    std::int64_t alone = 0;
    for (std::int64_t d = 0; d < w.cta_pairs.n(w.layout); ++d) {
      const CtaPairTask a = w.cta_pairs.task(w.layout, d, 0), b = w.cta_pairs.task(w.layout, d, 1);
      ASSERT_EQ(a.first == a.second && !a.idle_second, b.first == b.second && !b.idle_second);
      ASSERT_FALSE(a.idle_second && b.idle_second);
      ASSERT_EQ(a.common_first, b.common_first);
      if (a.common_first) {
        ASSERT_EQ(a.first, b.first);
        ASSERT_EQ(a.item.channel, b.item.channel);
      } else if (a.first != a.second) {
        ++alone;
      }
    }
    // Tiles below the diagonal that meet no other: one a channel if their number is
    // odd; of 2 rows, it meets a tile on the diagonal.
    const bool odd = tile_rows * (tile_rows - 1) / 2 % 2 == 1;
    ASSERT_EQ(alone, odd && tile_rows != 2 ? 2 : 0) << tile_rows;
  }
}

}  // namespace
}  // namespace ryle::correlate::test
