// SPDX-License-Identifier: BSD-3-Clause
// The tree in the place of exact sums.
#include <gtest/gtest.h>

#include "ryle/pipeline/search/search_run.hpp"
#include "tests/support/data_path.hpp"

namespace ryle::pipeline {
namespace {

TEST(SearchTree, FindsTheSameBurst) {
  RYLE_REQUIRE_DATA(fil, "transients/askap_frb180417/28.fil");
  SearchOptions o;
  o.file = fil;
  o.implementation = "fdmt";
  const auto s = search_file(o);
  EXPECT_EQ(s.description.implementation.rfind("search/fdmt/", 0), 0u);
  EXPECT_NE(s.description.plan.find("of the plan"), std::string::npos) << s.description.plan;
  ASSERT_EQ(s.n_candidates, 1);
  for (const auto& event : s.events) {
    if (!event.flags.empty()) continue;
    EXPECT_NEAR(event.dm_pc_cm3, 474, 3);
    EXPECT_GE(event.snr, 15.5);
  }
}

// Sub-bands where they are allowed, within the samples that are given away, and not unasked.
TEST(SearchTree, SmearSamplesBoundSubbands) {
  RYLE_REQUIRE_DATA(fil, "transients/askap_frb180417/28.fil");
  SearchOptions o;
  o.file = fil;
  o.dm_min = 400;
  o.dm_max = 550;
  EXPECT_EQ(search_file(o).description.implementation.rfind("search/cpu/", 0), 0u);
  o.implementation = "subband";
  const auto tight = search_file(o);
  o.smear_samples = 4;
  const auto loose = search_file(o);
  EXPECT_NE(tight.description.plan.find("within 1 sample of"), std::string::npos);
  EXPECT_EQ(loose.description.plan.find("within 1 sample of"), std::string::npos)
      << loose.description.plan;
  EXPECT_EQ(loose.description.implementation.rfind("search/subband/", 0), 0u);
  ASSERT_EQ(loose.n_candidates, 1);
  EXPECT_NEAR(loose.events.front().dm_pc_cm3, 474, 3);
}

}  // namespace
}  // namespace ryle::pipeline
