// SPDX-License-Identifier: BSD-3-Clause
// The Hopper correlator of ci4 without a GPU: its operands are 16 times the codes, in the order of
// the spectra on both sides, and its two rings go on.
#include <vector>

#include "ryle/engine/correlate/cuda/wgmma_int4.hpp"
#include "tests/engine/correlate/wgmma_model.hpp"

namespace ryle::correlate::test {
namespace {

int part_of(const Voltages& v, int channel, int block, int input, int t, int part) {
  const int byte = static_cast<int>(v.view.cell(channel, block, input)[t]);
  const int nibble = part == 0 ? byte >> 4 : byte & 15;
  return nibble < 8 ? nibble : nibble - 16;
}

/// What the kernel's widen_slot() does.
std::array<Slot, 2> widen(const Slot& slot) {
  std::array<Slot, 2> stage{};
  for (int row = 0; row < kTile; ++row) {
    for (int piece = 0; piece < 8; ++piece) {
      for (int k = 0; k < 16; ++k) {
        const int code = slot[static_cast<std::size_t>(swizzled(row, piece) + k)];
        for (int part = 0; part < 2; ++part) {
          const int to = widened(row, piece, part) + k;
          stage[static_cast<std::size_t>(to / kSlotBytes)]
               [static_cast<std::size_t>(to % kSlotBytes)] =
                   static_cast<std::int8_t>((part == 0 ? code : code << 4) & 0xf0);
        }
      }
    }
  }
  return stage;
}

TEST(WgmmaNibbles, OperandsAreSixteenTimesTheCodes) {
  Voltages v(SampleFormat::ci4, 2, 256, 100, true);
  v.fill_random(7);
  const int channel = 1, block = 1;
  const Slot slot = bring(v, channel, 0, block, kTile);
  const std::array<Slot, 2> stage = widen(slot);
  const auto wanted = [&](int input, int t, int part) {
    return input < 100 ? 16 * part_of(v, channel, block, input, t, part) : 0;
  };
  for (int step = 0; step < 4; ++step) {
    for (int part = 0; part < 2; ++part) {
      const OperandB b =
          operand_columns(stage[static_cast<std::size_t>(step / 2)], 0, step % 2, part);
      for (int n = 0; n < kTile; ++n) {
        for (int k = 0; k < kPartBytes; ++k)
          ASSERT_EQ(b[static_cast<std::size_t>(n)][static_cast<std::size_t>(k)],
                    wanted(n, 32 * step + k, part))
              << n << ' ' << step << ' ' << k;
      }
    }
    // ldmatrix as in operand_rows(): lane l gets 4 bytes of row l / 4 of matrix m.
    for (int thread = 0; thread < kThreads; ++thread) {
      const int warpgroup = thread / 128, warp = thread / 32 % 4, l = thread % 32;
      for (int m = 0; m < 4; ++m) {
        const int from = operand_int4(warpgroup, warp, 8 * m + l / 4, step) + 4 * (l % 4);
        const int row = warpgroup * kGroupRows + 16 * warp + l / 4 + 8 * (m % 2);
        for (int k = 0; k < 4; ++k) {
          const int code = slot[static_cast<std::size_t>(from + k)];
          const int t = 32 * step + 4 * (l % 4) + 16 * (m / 2) + k;
          ASSERT_EQ(static_cast<std::int8_t>(code & 0xf0), wanted(row, t, 0));
          ASSERT_EQ(static_cast<std::int8_t>(code << 4 & 0xf0), wanted(row, t, 1));
        }
      }
    }
  }
}

/// One step of somebody's program: wait until fill `number` of ring `ring` is there (or free, who
/// fills it), or let go of it.
struct Act {
  enum Kind : std::uint8_t { await_full, await_empty, fill, release } kind;
  int ring;
  int number;
};

/// Producer, wideners and two warpgroups go on as long as they can; the wideners and the warpgroups
/// all let go of every slot, as in cuda/wgmma_s4.cu.
bool rings_finish(int n_slots, int n_stages, const std::vector<std::pair<bool, int>>& pieces) {
  std::vector<Act> producer, widener, warpgroup;
  int slot = 0, stage = 0;
  for (const auto& [across, n_blocks] : pieces) {
    for (int k = 0; k < n_blocks; ++k, ++stage) {
      const int rows = slot++, columns = across ? slot++ : rows;
      for (int s = rows; s <= columns; ++s) {
        producer.push_back({Act::await_empty, 0, s});
        producer.push_back({Act::fill, 0, s});
      }
      widener.push_back({Act::await_full, 0, columns});
      widener.push_back({Act::await_empty, 1, stage});
      for (int s = rows; s <= columns; ++s) widener.push_back({Act::release, 0, s});
      widener.push_back({Act::fill, 1, stage});
      warpgroup.push_back({Act::await_full, 0, rows});
      warpgroup.push_back({Act::await_full, 1, stage});
      if (k > 0) warpgroup.push_back({Act::release, 1, stage - 1});
      for (int s = rows; s <= columns; ++s) warpgroup.push_back({Act::release, 0, s});
    }
    warpgroup.push_back({Act::release, 1, stage - 1});
  }
  const int releases[2] = {3, 2}, places[2] = {n_slots, n_stages};
  std::vector<int> filled[2], released[2];
  for (int r = 0; r < 2; ++r) {
    filled[r].assign(static_cast<std::size_t>(r == 0 ? slot : stage), 0);
    released[r] = filled[r];
  }
  const std::vector<Act>* programs[] = {&producer, &widener, &warpgroup, &warpgroup};
  std::size_t at[4] = {};
  const auto may = [&](const Act& act) {
    const auto n = static_cast<std::size_t>(act.number);
    if (act.kind == Act::await_full) return filled[act.ring][n] == 1;
    if (act.kind != Act::await_empty || act.number < places[act.ring]) return true;
    return released[act.ring][n - static_cast<std::size_t>(places[act.ring])] == releases[act.ring];
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int p = 0; p < 4; ++p) {
      while (at[p] < programs[p]->size() && may((*programs[p])[at[p]])) {
        const Act& act = (*programs[p])[at[p]++];
        const auto n = static_cast<std::size_t>(act.number);
        // Nobody lets go of what is not there yet: it would count for the slot's fill before.
        if (act.kind == Act::release) {
          EXPECT_EQ(filled[act.ring][n], 1);
          ++released[act.ring][n];
        }
        if (act.kind == Act::fill) filled[act.ring][n] = 1;
        moved = true;
      }
    }
  }
  bool finished = true;
  for (int p = 0; p < 4; ++p) finished = finished && at[p] == programs[p]->size();
  return finished;
}

TEST(WgmmaNibbles, RingsNeverStall) {
  const std::vector<std::pair<bool, int>> pieces{{true, 5}, {false, 4}, {true, 1},
                                                 {true, 7}, {false, 1}, {false, 3}};
  for (int slots = 3; slots <= kMaxSlotsOfInt4; ++slots)
    EXPECT_TRUE(rings_finish(slots, kStages, pieces)) << slots;
  EXPECT_TRUE(rings_finish(3, 2, pieces));
  EXPECT_FALSE(rings_finish(3, 1, pieces));  // columns are held until the next ones are there
  EXPECT_FALSE(rings_finish(1, 2, pieces));
  // 227 KiB of shared memory hold all: slots, stages, sums on their way out, alignment, barriers.
  EXPECT_LE(kMaxSlotsOfInt4 * kSlotBytes + kStages * kStageBytes + 8 * 4096 + 2 * 1024 + 512,
            227 << 10);
}

}  // namespace
}  // namespace ryle::correlate::test
