// SPDX-License-Identifier: BSD-3-Clause
// The Hopper correlator without a GPU: its copies, operands, registers and sums are modelled from
// what the PTX manual says of the instructions, through the addresses that the kernel computes, and
// must give the reference's integers.
#include <numeric>
#include <vector>

#include "ryle/core/baseline.hpp"
#include "ryle/engine/correlate/cuda/tuning.hpp"
#include "tests/engine/correlate/wgmma_model.hpp"

namespace ryle::correlate::test {
namespace {

/// What the kernel does with a gulp; sums lie as in device memory.
class Model {
 public:
  Model(const Voltages& v, std::int64_t concurrent, std::int64_t min_blocks)
      : v_(v), layout_(layout_of(v.view.n_inputs, v.view.n_channels)) {
    const std::int64_t blocks = n_blocks(SampleFormat::ci8, v.n_spectra);
    shares_ = partitions_of(layout_.n_items, blocks, concurrent, min_blocks);
    sums_.assign(static_cast<std::size_t>(layout_.n_sums() + layout_.n_input_sums()), 0x5A5A5A5A);
  }

  void launch(bool overwrite) {
    if (overwrite) std::fill(sums_.begin() + shares_.n_whole * layout_.item_sums(), sums_.end(), 0);
    for (std::int64_t partition = 0; partition < shares_.n(); ++partition) {
      for_each_run(shares_, partition, [&](std::int64_t id, int first_block, int n) {
        for (int warpgroup = 0; warpgroup < kWarpgroups; ++warpgroup)
          work(id, first_block, n, warpgroup, overwrite && n == shares_.n_blocks);
      });
    }
  }

  ci64 at(int channel, int i, int j) const { return value(layout_, sums_.data(), channel, i, j); }
  const Layout& layout() const { return layout_; }

 private:
  void work(std::int64_t id, int first_block, int n, int warpgroup, bool overwrite) {
    const Item item = layout_.item(id);
    const bool diagonal = item.tile.row == item.tile.column;
    ByteProduct re{}, im{};
    std::array<std::int32_t, kGroupRows> inputs{};
    for (int block = first_block; block < first_block + n; ++block) {
      const int rows = layout_.paired ? kGroupRows : kTile;
      const Slot row_slot = bring(v_, item.channel, item.tile.row * kTile, block, rows);
      const Slot column_slot =
          diagonal ? row_slot : bring(v_, item.channel, item.tile.column * kTile, block, rows);
      const int first = layout_.paired ? warpgroup * kGroupRows : 0;
      for (int step = 0; step < kSteps; ++step) {
        const OperandA a_re = operand_rows(row_slot, warpgroup, step, 0);
        const OperandA a_im = operand_rows(row_slot, warpgroup, step, 1);
        const OperandB b_re = operand_columns(column_slot, first, step, 0);
        const OperandB b_im = operand_columns(column_slot, first, step, 1);
        const std::size_t all = layout_.paired ? 64 : 128;
        const std::size_t half = diagonal && warpgroup == 0 ? 64 : all;
        multiply_bytes(re, a_re, b_re, half);
        multiply_bytes(re, a_im, b_im, half);
        multiply_bytes(im, a_re, b_im, all);
        if (!diagonal) multiply_bytes(im, a_im, b_re, all, true);
        for (std::size_t r = 0; r < kGroupRows; ++r)
          inputs[r] += std::accumulate(a_re[r].begin(), a_re[r].end(), 0);
      }
    }
    keep_bytes(sums_, layout_, id, warpgroup, re, im, overwrite);
    if (!needs_input_sums(layout_, item.tile)) return;
    const std::int64_t to = layout_.n_sums() +
                            std::int64_t{item.channel} * layout_.padded_inputs() +
                            item.tile.row * kTile + warpgroup * kGroupRows;
    for (std::size_t r = 0; r < kGroupRows; ++r)
      sums_[static_cast<std::size_t>(to) + r] += inputs[r];
  }

  const Voltages& v_;
  Layout layout_;
  Partitions shares_;
  std::vector<std::int32_t> sums_;
};

// Any number of inputs and channels, work cut anywhere, strides with garbage in the gaps, all
// codes.
TEST(WgmmaLayout, ModelOfTheKernelGivesTheReference) {
  struct Case {
    std::int64_t n, c, t, concurrent, min_blocks;
  };
  for (const Case& k :
       {Case{1, 1, 5, 4, 1}, Case{5, 3, 129, 1, 8}, Case{64, 2, 64, 3, 1}, Case{65, 1, 129, 3, 1},
        Case{128, 3, 65, 2, 1}, Case{130, 1, 128, 2, 1}, Case{257, 1, 65, 5, 2}}) {
    Voltages v(SampleFormat::ci8, k.c, k.t, k.n, k.n % 2 == 1);
    v.fill_random(static_cast<std::uint64_t>(k.n));
    for (std::int64_t t = 0; t < k.t; t += 7) set_sample(v.view, 0, t, k.n / 2, {-128, -128});
    const Sums want = expected(v);
    Model model(v, k.concurrent, k.min_blocks);
    model.launch(true);  // over what lay there
    for (int launch = 1; launch <= 2; ++launch) {
      if (launch == 2) model.launch(false);  // on top of it
      std::size_t p = 0;
      for (int c = 0; c < k.c; ++c) {
        for (int j = 0; j < k.n; ++j) {
          for (int i = 0; i <= j; ++i, ++p) {
            const ci64 found = model.at(c, i, j);
            ASSERT_EQ(found.re, launch * want.integer[p].re) << k.n << ": " << c << " " << i << j;
            ASSERT_EQ(found.im, launch * want.integer[p].im) << k.n << ": " << c << " " << i << j;
          }
        }
      }
    }
  }
}

// Every block of every item is in exactly one share, shares of a round are equal, and none of those
// cut is shorter than allowed unless it is all there is.
TEST(WgmmaLayout, SharesAreAPartitionOfTheWork) {
  for (const std::int64_t items : {1, 3, 84, 131, 132, 133, 480, 1000}) {
    for (const std::int64_t blocks : {1, 7, 64, 1023}) {
      const Partitions s = partitions_of(items, blocks, 132, 8);
      std::vector<int> seen(static_cast<std::size_t>(items * blocks));
      std::int64_t longest_cut = 0;
      for (std::int64_t p = 0; p < s.n(); ++p) {
        std::int64_t length = 0;
        for_each_run(s, p, [&](std::int64_t item, int first, int n) {
          ASSERT_GE(n, 1);
          ASSERT_LE(first + n, blocks);
          length += n;
          for (int k = 0; k < n; ++k) ++seen[static_cast<std::size_t>(item * blocks + first + k)];
        });
        if (p >= s.n_whole) {
          longest_cut = std::max(longest_cut, length);
        } else {
          ASSERT_EQ(length, blocks);
        }
      }
      for (const int count : seen) ASSERT_EQ(count, 1) << items << " items, " << blocks;
      EXPECT_LE(s.n_cut, 132);
      // All end together: a share is at most one block longer than the mean.
      const std::int64_t rest = items % 132 * blocks;
      if (rest > 0) {
        EXPECT_LE(longest_cut, (rest + s.n_cut - 1) / s.n_cut);
      }
      if (rest >= 132 * 8) {
        EXPECT_EQ(s.n_cut, 132);
      }
    }
  }
}

/// The ring with a producer and two warpgroups that go on as long as they can: fill f needs fill
/// f - n_slots released by both. Program of a warpgroup per block: wait for its rows (and columns),
/// let go of the columns before, then of the rows; the last columns at the end of a piece.
bool ring_finishes(int n_slots, const std::vector<std::pair<bool, int>>& pieces) {
  struct Act {
    bool release;
    int fill;
  };
  std::vector<Act> program;
  int n_fills = 0;
  for (const auto& [diagonal, n_blocks] : pieces) {
    int before = -1;
    for (int k = 0; k < n_blocks; ++k) {
      const int rows = n_fills++;
      program.push_back({false, rows});
      const int columns = diagonal ? rows : n_fills++;
      program.push_back({false, columns});
      if (before >= 0) program.push_back({true, before});
      before = columns;
      if (!diagonal) program.push_back({true, rows});
    }
    program.push_back({true, before});
  }
  std::vector<int> released(static_cast<std::size_t>(n_fills));
  std::size_t at[2] = {0, 0};
  int filled = 0;
  for (bool moved = true; moved;) {
    moved = false;
    while (filled < n_fills &&
           (filled < n_slots || released[static_cast<std::size_t>(filled - n_slots)] == 2)) {
      ++filled;
      moved = true;
    }
    for (auto& sum_offset : at) {
      while (sum_offset < program.size() &&
             (program[sum_offset].release || program[sum_offset].fill < filled)) {
        if (program[sum_offset].release)
          ++released[static_cast<std::size_t>(program[sum_offset].fill)];
        ++sum_offset;
        moved = true;
      }
    }
  }
  for (const int count : released) EXPECT_LE(count, 2);
  return at[0] == program.size() && at[1] == program.size() && filled == n_fills;
}

TEST(WgmmaLayout, RingOfTheLeastSlotsNeverStalls) {
  const std::vector<std::pair<bool, int>> pieces{{false, 5}, {true, 4}, {false, 1},
                                                 {false, 7}, {true, 1}, {true, 3}};
  for (int slots = kMinSlots; slots <= kMaxSlots; ++slots)
    EXPECT_TRUE(ring_finishes(slots, pieces)) << slots;
  EXPECT_FALSE(ring_finishes(kMinSlots - 1, pieces));
}

TEST(WgmmaLayout, TilesAndTuningOfAnySize) {
  for (const std::int64_t n : {1, 64, 65, 128, 129, 2048, 65536}) {
    const Layout l = layout_of(n, 3);
    EXPECT_EQ(l.paired, n <= 64);
    EXPECT_EQ(l.n_items, l.paired ? 2 : 3 * n_pairs(l.tile_rows));
    const Item last = l.item(l.n_items - 1);
    EXPECT_EQ(last.channel, 2);
    EXPECT_EQ(last.tile.row, l.tile_rows - 1);
    EXPECT_EQ(last.tile.column, l.tile_rows - 1);
    const CudaTuning t = cuda_tuning(90, n);
    EXPECT_GE(t.slots, 5);  // 80 KiB on their way
    EXPECT_LE(t.slots, kMaxSlots);
  }
  // 227 KiB of shared memory hold the most slots, sums of 8 warps on their way out, a swizzle's
  // period and the barriers.
  EXPECT_LE(kMaxSlots * kSlotBytes + 8 * 4096 + 1024 + 512, 227 << 10);
}

}  // namespace
}  // namespace ryle::correlate::test
