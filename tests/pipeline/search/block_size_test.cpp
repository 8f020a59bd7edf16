// SPDX-License-Identifier: BSD-3-Clause
// Blocks that a search on a device chooses itself.
#include "ryle/pipeline/search/search_block_size.hpp"

#include <gtest/gtest.h>

namespace ryle::pipeline {
namespace {

std::int64_t block_of(std::int64_t again, double longest_s, std::int64_t memory_bytes) {
  BlockWish wish;
  wish.again_samples = again;
  wish.sample_interval_s = 50e-6;
  wish.longest_s = longest_s;
  wish.memory_bytes = memory_bytes;
  return choose_block(wish, [](std::int64_t n) { return 1000 + 10 * n; });
}

TEST(BlockSize, ThreeTimesWhatIsSummedAnew) {
  EXPECT_EQ(block_of(4125 + 256, 1, 0), 13 * 1024);  // 13143 samples
  EXPECT_EQ(block_of(4096, 1, 0), 12 * 1024);        // no more than that
  EXPECT_EQ(block_of(10, 1, 0), 8192);
  EXPECT_EQ(block_of(1'000'000, 600, 0), 1 << 20);
}

TEST(BlockSize, NoLongerThanCandidatesMayWait) {
  EXPECT_EQ(block_of(4381, 0.5, 0), 9 * 1024);  // 10,000 samples
  EXPECT_EQ(block_of(4381, 0.001, 0), 1024);
}

TEST(BlockSize, TheLargestThatFits) {
  for (std::int64_t steps = 2; steps <= 14; ++steps) {
    const std::int64_t bytes = 1000 + 10 * 1024 * steps;
    EXPECT_EQ(block_of(4381, 1, bytes), 1024 * std::min<std::int64_t>(steps, 13));
    EXPECT_EQ(block_of(4381, 1, bytes - 1), 1024 * std::min<std::int64_t>(steps - 1, 13));
  }
  EXPECT_EQ(block_of(4381, 1, 1), 1024);  // whoever allocates says so
  EXPECT_GT(plannable_bytes(std::int64_t{80} << 30), std::int64_t{76} << 30);
  EXPECT_LT(plannable_bytes(std::int64_t{80} << 30), std::int64_t{78} << 30);
}

}  // namespace
}  // namespace ryle::pipeline
