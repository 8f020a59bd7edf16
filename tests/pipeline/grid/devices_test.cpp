// SPDX-License-Identifier: BSD-3-Clause
// What is decided for devices where there is none.
#include <algorithm>

#include "ryle/pipeline/grid/grid_devices.hpp"
#include "tests/pipeline/grid/scans_support.hpp"

namespace ryle::pipeline {
namespace {

TEST(GridDevices, ListsThatCpusMakeAreNotPlannedForThem) {
  const Scratch scratch;
  const GridOptions o = options_of(scratch, write_scans(scratch, some_scans()));
  Queue queue = Queue::cpu(2);
  GridSummary summary;
  GridSetup setup = make_grid_setup(queue, o, summary);
  const auto lists = [&] {
    const GridPlan plan = plan_grid_memory(setup, o, 2, false);
    return std::count_if(plan.memory_bytes.begin(), plan.memory_bytes.end(),
                         [](const auto& item) { return item.first == "lists of samples"; });
  };
  EXPECT_EQ(lists(), 1);
  for (const char* name : {"cuda", "reference"}) {
    setup.config.implementation = name;
    EXPECT_EQ(lists(), 0) << name;
  }
}

TEST(GridDevices, AreWorthTheirStartWhereCpusTakeLong) {
  EXPECT_FALSE(worth_a_device(10'000'000, 1));
  EXPECT_FALSE(worth_a_device(141'503'600, 2)) << "case A, 50 channels: 0.4 s";
  EXPECT_FALSE(worth_a_device(141'503'600, 16));
  EXPECT_TRUE(worth_a_device(4 * std::int64_t{141'503'600}, 2));
  EXPECT_TRUE(worth_a_device(4 * std::int64_t{141'503'600}, 16));
  EXPECT_TRUE(worth_a_device(std::int64_t{1} << 40, 256));
}

}  // namespace
}  // namespace ryle::pipeline
