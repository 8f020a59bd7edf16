// SPDX-License-Identifier: BSD-3-Clause
// Hopper's correlator of halves without a GPU: its operands, sums and the adding up of what is cut
// along time, in whatever order thread blocks end.
#include <algorithm>
#include <numeric>
#include <vector>

#include "ryle/core/baseline.hpp"
#include "ryle/engine/correlate/cuda/wgmma_floats.hpp"
#include "tests/engine/correlate/halves.hpp"
#include "tests/engine/correlate/wgmma_model.hpp"

namespace ryle::correlate::test {
namespace {

using FloatProduct = std::array<std::array<float, kTile>, kGroupRows>;

/// 16 products of a row and a column. Minus is the sign bit of either half of a word flipped.
void multiply_fp16(FloatProduct& sum, const OperandA& a, const OperandB& b, std::size_t n_columns,
                   bool minus = false) {
  const auto half = [](const auto& bytes, std::size_t k) {
    std::uint16_t bits;
    std::memcpy(&bits, &bytes[2 * k], 2);
    return bits;
  };
  std::array<std::array<float, 16>, kTile> columns;
  for (std::size_t n = 0; n < n_columns; ++n) {
    for (std::size_t k = 0; k < 16; ++k) columns[n][k] = ryle::test::of_half(half(b[n], k));
  }
  for (std::size_t r = 0; r < kGroupRows; ++r) {
    std::array<float, 16> row;
    for (std::size_t k = 0; k < 16; ++k)
      row[k] =
          ryle::test::of_half(static_cast<std::uint16_t>(half(a[r], k) ^ (minus ? 0x8000 : 0)));
    for (std::size_t n = 0; n < n_columns; ++n) {
      float s = 0;
      for (std::size_t k = 0; k < 16; ++k) s += row[k] * columns[n][k];
      sum[r][n] += s;
    }
  }
}

/// What the kernel does with gulps; sums lie as in device memory.
class Fp16Model {
 public:
  Fp16Model(const Voltages& v, std::int64_t concurrent, std::int64_t min_blocks)
      : v_(v), layout_(layout_of(v.view.n_inputs, v.view.n_channels)) {
    shares_ = partitions_of(layout_.n_items, v.view.n_blocks, concurrent, min_blocks);
    const auto item = static_cast<std::size_t>(layout_.item_sums());
    sums_.assign(static_cast<std::size_t>(layout_.n_items) * item, 1e9f);
    parts_.assign(static_cast<std::size_t>(n_part_slots(layout_.n_items, concurrent)) * item, 1e9f);
    arrived_.assign(static_cast<std::size_t>(layout_.n_items - shares_.n_whole), 0);
  }

  /// Partitions end in the order of `seed`.
  void launch(bool overwrite, std::uint64_t seed) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(shares_.n()));
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return mix64(combine(seed, static_cast<std::uint64_t>(a))) <
             mix64(combine(seed, static_cast<std::uint64_t>(b)));
    });
    for (const std::int64_t partition : order) {
      for_each_run(shares_, partition, [&](std::int64_t id, int first_block, int n) {
        std::vector<float> piece = multiplied(id, first_block, n);
        if (n < shares_.n_blocks && !brought_last(partition, id, piece)) return;
        float* to = &sums_[static_cast<std::size_t>(id * layout_.item_sums())];
        for (std::size_t k = 0; k < piece.size(); ++k)
          to[k] = overwrite ? piece[k] : to[k] + piece[k];
      });
    }
    for (const int n : arrived_) EXPECT_EQ(n, 0);  // as the next launch needs it
  }

  cf64 at(int channel, int i, int j) const {
    double parts[2];
    value(layout_, sums_.data(), channel, i, j, parts);
    return {parts[0], parts[1]};
  }

 private:
  bool brought_last(std::int64_t partition, std::int64_t id, std::vector<float>& piece) {
    const std::int64_t cut_item = id - shares_.n_whole, size = layout_.item_sums();
    const std::int64_t slot = slot_of(partition - shares_.n_whole, cut_item);
    std::copy(piece.begin(), piece.end(), parts_.begin() + slot * size);
    const Parts parts = parts_of(shares_, cut_item);
    if (++arrived_[static_cast<std::size_t>(cut_item)] < parts.n) return false;
    arrived_[static_cast<std::size_t>(cut_item)] = 0;
    for (std::int64_t k = 0; k < size; ++k) {
      float sum = parts_[static_cast<std::size_t>(parts.first_slot * size + k)];
      for (int p = 1; p < parts.n; ++p)
        sum += parts_[static_cast<std::size_t>((parts.first_slot + p) * size + k)];
      piece[static_cast<std::size_t>(k)] = sum;
    }
    return true;
  }

  std::vector<float> multiplied(std::int64_t id, int first_block, int n) const {
    std::vector<float> sums(static_cast<std::size_t>(layout_.item_sums()));
    const Item item = layout_.item(id);
    const bool diagonal = item.tile.row == item.tile.column;
    const int rows = layout_.paired ? kGroupRows : kTile;
    for (int warpgroup = 0; warpgroup < kWarpgroups; ++warpgroup) {
      FloatProduct re{}, im{};
      const std::size_t all = layout_.paired ? 64 : 128;
      const std::size_t half = diagonal && warpgroup == 0 ? 64 : all;
      const int first = layout_.paired ? warpgroup * kGroupRows : 0;
      for (int block = first_block; block < first_block + n; ++block) {
        const Slot row_slot = bring(v_, item.channel, item.tile.row * kTile, block, rows);
        const Slot column_slot =
            diagonal ? row_slot : bring(v_, item.channel, item.tile.column * kTile, block, rows);
        for (int step = 0; step < kSteps; ++step) {
          const OperandA a_re = operand_rows(row_slot, warpgroup, step, 0);
          const OperandA a_im = operand_rows(row_slot, warpgroup, step, 1);
          const OperandB b_re = operand_columns(column_slot, first, step, 0);
          const OperandB b_im = operand_columns(column_slot, first, step, 1);
          multiply_fp16(re, a_re, b_re, half);
          multiply_fp16(im, a_re, b_im, all);
          multiply_fp16(re, a_im, b_im, half);
          if (!diagonal) multiply_fp16(im, a_im, b_re, all, true);
        }
      }
      for (int r = 0; r < kGroupRows; ++r) {
        for (int c = 0; c < (layout_.paired ? 64 : 128); ++c) {
          const auto to = static_cast<std::size_t>(
              sum_offset(warpgroup * kGroupRows + r, c, layout_.registers()));
          const auto row = static_cast<std::size_t>(r), column = static_cast<std::size_t>(c);
          sums[to] = re[row][column];
          sums[to + static_cast<std::size_t>(layout_.part_sums())] = im[row][column];
        }
      }
    }
    return sums;
  }

  const Voltages& v_;
  Layout layout_;
  Partitions shares_;
  std::vector<float> sums_, parts_;
  std::vector<int> arrived_;
};

// Integers, so that fp32 is exact: a wrong operand, sign or part shows. Work cut anywhere.
TEST(WgmmaF16, ModelOfTheKernelGivesTheReference) {
  struct Case {
    std::int64_t n, c, t, concurrent, min_blocks;
  };
  for (const Case& k : {Case{5, 3, 130, 5, 1}, Case{64, 2, 33, 3, 1}, Case{65, 1, 129, 3, 1},
                        Case{130, 1, 65, 2, 1}}) {
    const Voltages v = halves_of(k.n, k.c, k.t, true);
    const Sums want = expected(v);
    Fp16Model model(v, k.concurrent, k.min_blocks);
    for (int launch = 1; launch <= 2; ++launch) {
      model.launch(launch == 1, static_cast<std::uint64_t>(launch));
      std::size_t p = 0;
      for (int c = 0; c < k.c; ++c) {
        for (int j = 0; j < k.n; ++j) {
          for (int i = 0; i <= j; ++i, ++p) {
            ASSERT_EQ(model.at(c, i, j), static_cast<double>(launch) * want.real[p])
                << k.n << ": " << c << ' ' << i << ' ' << j;
          }
        }
      }
    }
  }
}

// The order of additions is that of time, whoever is first.
TEST(WgmmaF16, BitsDoNotDependOnWhoEndsFirst) {
  const Voltages v = halves_of(3, 3, 200, false);
  std::vector<cf64> first;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Fp16Model model(v, 7, 1);
    model.launch(true, seed);
    std::vector<cf64> found;
    for (int c = 0; c < 3; ++c) {
      for (int j = 0; j < 3; ++j) {
        for (int i = 0; i <= j; ++i) found.push_back(model.at(c, i, j));
      }
    }
    if (seed == 0) first = found;
    ASSERT_EQ(found, first) << seed;
  }
}

// Every part of a cut item has a slot of its own, and the parts of an item are found in order.
TEST(WgmmaF16, PartsAreInSlotsOfTheirOwn) {
  for (const std::int64_t items : {1, 3, 84, 131, 132, 133, 480, 1000}) {
    for (const std::int64_t blocks : {1, 7, 64, 128}) {
      for (const std::int64_t minimum : {1, 8}) {
        const Partitions s = partitions_of(items, blocks, 132, minimum);
        std::vector<std::vector<std::int64_t>> slots(static_cast<std::size_t>(items - s.n_whole));
        std::int64_t last = -1;
        for (std::int64_t partition = s.n_whole; partition < s.n(); ++partition) {
          for_each_run(s, partition, [&](std::int64_t item, int, int) {
            const std::int64_t slot = slot_of(partition - s.n_whole, item - s.n_whole);
            ASSERT_GT(slot, last);  // pieces come in the order of the work
            last = slot;
            slots[static_cast<std::size_t>(item - s.n_whole)].push_back(slot);
          });
        }
        ASSERT_LT(last, n_part_slots(items, 132));
        for (std::size_t k = 0; k < slots.size(); ++k) {
          const Parts parts = parts_of(s, static_cast<std::int64_t>(k));
          ASSERT_EQ(parts.n, static_cast<int>(slots[k].size())) << items << ' ' << blocks;
          for (std::size_t p = 0; p < slots[k].size(); ++p)
            ASSERT_EQ(slots[k][p], parts.first_slot + static_cast<std::int64_t>(p));
        }
      }
    }
  }
}

}  // namespace
}  // namespace ryle::correlate::test
