// SPDX-License-Identifier: BSD-3-Clause
// The tree in the place of exact sums.
#include <gtest/gtest.h>

#include "ryle/stage/search_run.hpp"
#include "tests/support/data_path.hpp"

namespace ryle::stage {
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

}  // namespace
}  // namespace ryle::stage
