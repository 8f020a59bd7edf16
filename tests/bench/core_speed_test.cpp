// SPDX-License-Identifier: BSD-3-Clause
// Runs on cores whose speed changes: which count, and at what speed.
#include "bench/core_speed.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace ryle::bench {
namespace {

TEST(CoreSpeed, RunsCountWhileTheSpeedStands) {
  // At equal speed: 2, 6 (dropped), 1, 3, 5 and 4 units of work.
  const auto run = [](double seconds, double ops, double moved) {
    return RunAtSpeed{seconds, {ops, 1, 0}, moved, seconds, 1};
  };
  const TimedAtSpeed timed = steady_runs({run(2, 1, 0.05), run(3, 2, 0.11), run(0.5, 2, 0),
                                          run(1, 3, 0.1), run(5, 1, 0), run(1, 4, 0)});
  EXPECT_EQ(timed.n_dropped, 1);
  ASSERT_EQ(timed.kept.size(), 5u);
  EXPECT_EQ(timed.min_s(), 0.5);
  EXPECT_EQ(timed.median_s(), 1);
  EXPECT_EQ(timed.typical().seconds, 2);  // a quarter of the others did more in their time
  EXPECT_TRUE(steady_runs({run(1, 1, 0.2)}).empty());
}

// A second at 100 and three at 200 are the work of four at 175; a quarter that is off by 0.4 is 0.1
// of the whole, and two of them are less than 0.2.
TEST(CoreSpeed, PartsCountByTheirTime) {
  const RunAtSpeed run = joined({{1, {100, 8, 2}, 0.4, 2, 0.5}, {3, {200, 4, 6}, 0, 3, 1}});
  EXPECT_DOUBLE_EQ(run.seconds, 4);
  EXPECT_DOUBLE_EQ(run.wall_s, 5);
  EXPECT_DOUBLE_EQ(run.core_share, 0.875);
  EXPECT_DOUBLE_EQ(run.speed.ops, 175);
  EXPECT_DOUBLE_EQ(run.speed.bytes_per_s, 5);
  EXPECT_DOUBLE_EQ(run.speed.product_ops, 5);
  EXPECT_DOUBLE_EQ(run.moved, 0.1);
  EXPECT_DOUBLE_EQ(joined({{1, {}, 0.4, 1, 1}, {1, {}, 0.4, 1, 1}, {2, {}, 0, 2, 1}}).moved,
                   0.1 * std::sqrt(2.0));
}

// One worker that had its core half of the time worked for half of it. Two that wait for each other
// never have both cores all the time: the best of their runs is the measure.
TEST(CoreSpeed, WhatOtherProgramsTookIsNotCounted) {
  for (const auto& [n_workers, first_s] : {std::pair{1, 1.0}, {2, 1.25}}) {
    std::vector<RunAtSpeed> runs{{2, {1, 1, 0}, 0, 2, 0.5}, {1, {1, 1, 0}, 0, 1, 0.8}};
    count_own_time(runs, n_workers);
    EXPECT_DOUBLE_EQ(runs[0].seconds, first_s) << n_workers;
    EXPECT_DOUBLE_EQ(runs[1].seconds, n_workers == 1 ? 0.8 : 1);
    EXPECT_DOUBLE_EQ(steady_runs(runs).min_s(), 1);
  }
}

TEST(CoreSpeed, EveryPartOfEveryRunIsTimed) {
  Queue queue = Queue::cpu(2);
  CoreSpeedProbe probe(queue);
  const image::CoreSpeed speed = probe.measure();
  EXPECT_GT(speed.ops, 1e8);
  EXPECT_LT(speed.ops, 1e12);
  EXPECT_GT(speed.bytes_per_s, 1e7);
  EXPECT_LT(speed.bytes_per_s, 1e12);
  EXPECT_GT(speed.product_ops, 1e8);
  EXPECT_LT(speed.product_ops, 1e14);
  int first = 0, second = 0;
  const auto timed = time_at_speed(probe, 0.001, {{[&] { ++first; }}, {[&] { ++second; }, true}});
  EXPECT_EQ(first, second);
  EXPECT_EQ(first, static_cast<int>(timed.kept.size()) + timed.n_dropped);
  EXPECT_GE(first, 5);
}

}  // namespace
}  // namespace ryle::bench
