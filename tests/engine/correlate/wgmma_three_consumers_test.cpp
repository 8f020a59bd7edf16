// SPDX-License-Identifier: BSD-3-Clause
// The Hopper correlator by three warpgroups without a GPU: as wgmma_layout_test.cpp.
#include <algorithm>
#include <numeric>
#include <vector>

#include "ryle/core/baseline.hpp"
#include "ryle/engine/correlate/cuda/wgmma_three_consumers.hpp"
#include "tests/engine/correlate/wgmma_model.hpp"

namespace ryle::correlate::test {
namespace {

/// What one warpgroup makes of half a channel, from the two slots that are brought of a block.
void work_three(const Voltages& v, const Layout& layout, int channel, int half, int warpgroup,
                std::vector<std::int32_t>& sums) {
  const ThreeTask task = three_task(half, warpgroup);
  const bool diagonal = task.tile.row == task.tile.column;
  ByteProduct re{}, im{};
  std::array<std::int32_t, kGroupRows> inputs{};
  for (int block = 0; block < n_blocks(SampleFormat::ci8, v.n_spectra); ++block) {
    const Slot own = bring(v, channel, first_own_input(half), block, kTile);
    Slot other = bring(v, channel, first_other_input(half), block, kTile);
    std::fill(other.begin() + n_other_inputs(half) * kRowBytes, other.end(), std::int8_t{77});
    const Slot& rows = task.rows_other ? other : own;
    const Slot& columns = task.columns_other ? other : own;
    for (int step = 0; step < kSteps; ++step) {
      const OperandA a_re = operand_rows(rows, task.warpgroup, step, 0);
      const OperandA a_im = operand_rows(rows, task.warpgroup, step, 1);
      const OperandB b_re = operand_columns(columns, 0, step, 0);
      const OperandB b_im = operand_columns(columns, 0, step, 1);
      const std::size_t of_re = diagonal && task.warpgroup == 0 ? 64 : 128;
      multiply_bytes(re, a_re, b_re, of_re);
      multiply_bytes(re, a_im, b_im, of_re);
      multiply_bytes(im, a_re, b_im, 128);
      if (!diagonal) multiply_bytes(im, a_im, b_re, 128, true);
      for (std::size_t r = 0; r < kGroupRows; ++r)
        inputs[r] += std::accumulate(a_re[r].begin(), a_re[r].end(), 0);
    }
  }
  keep_bytes(sums, layout, id_of(layout, channel, task.tile), task.warpgroup, re, im, true);
  if (!needs_input_sums(layout, task.tile)) return;
  std::copy(inputs.begin(), inputs.end(),
            sums.begin() + layout.n_sums() + std::int64_t{channel} * layout.padded_inputs() +
                task.tile.row * kTile + task.warpgroup * kGroupRows);
}

TEST(WgmmaThree, ModelOfTheKernelGivesTheReference) {
  for (const std::int64_t n : {129, 200, 256}) {
    Voltages v(SampleFormat::ci8, 2, 65, n, n % 2 == 1);
    v.fill_random(static_cast<std::uint64_t>(n));
    for (std::int64_t t = 0; t < 65; t += 7) set_sample(v.view, 0, t, n / 2, {-128, -128});
    const Sums want = expected(v);
    const Layout layout = layout_of(n, 2);
    std::vector<std::int32_t> sums(
        static_cast<std::size_t>(layout.n_sums() + layout.n_input_sums()), 0x5A5A5A5A);
    for (int id = 0; id < 4; ++id) {
      for (int warpgroup = 0; warpgroup < kThreeWarpgroups; ++warpgroup)
        work_three(v, layout, id / 2, id % 2, warpgroup, sums);
    }
    std::size_t p = 0;
    for (int c = 0; c < 2; ++c) {
      for (int j = 0; j < n; ++j) {
        for (int i = 0; i <= j; ++i, ++p) {
          const ci64 found = value(layout, sums.data(), c, i, j);
          ASSERT_EQ(found.re, want.integer[p].re) << n << ": " << c << ' ' << i << ' ' << j;
          ASSERT_EQ(found.im, want.integer[p].im) << n << ": " << c << ' ' << i << ' ' << j;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ryle::correlate::test
