// SPDX-License-Identifier: BSD-3-Clause
// The benchmark's cases are those of grid.md 14, drawn by numpy's generators.
#include "bench/grid_case.hpp"

#include <gtest/gtest.h>

namespace ryle::bench {
namespace {

TEST(GridCase, SumsAreThoseOfTheDefinition) {
  Queue queue = Queue::cpu(2);
  const GridCase c = make_grid_case(queue, 'A', {2, 64, 0.01});
  EXPECT_TRUE(c.sums_agree);
  EXPECT_EQ(c.n_samples(), (2'830'072 + 63) / 64);
  EXPECT_EQ(c.width, 17);  // 0.01 of 1650
  EXPECT_EQ(c.values.size(), 2 * c.n_samples());
  EXPECT_NE(c.values[0], c.values[c.n_samples()]);
}

}  // namespace
}  // namespace ryle::bench
